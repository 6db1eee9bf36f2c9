package inprocess_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/redisfilter/inprocess"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// TestRepliesAreThoseOfARealServer runs random commands on a redis-server and in process and
// compares each reply and, at last, every value.
func TestRepliesAreThoseOfARealServer(t *testing.T) {
	redistest.RequireReal(t)
	real := redistest.Start(t)
	in, err := inprocess.Start()
	require.NoError(t, err)
	defer in.Close()
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			connect := func(addr string) *redis.Client {
				c := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol, MaxRetries: -1})
				t.Cleanup(func() { c.Close() })
				return c
			}
			want, got := connect(real.Addr), connect(in.Addr())
			property.Check(t, func(t *rapid.T) {
				require.NoError(t, want.FlushAll(ctx).Err())
				require.NoError(t, got.FlushAll(ctx).Err())
				for range rapid.IntRange(1, 40).Draw(t, "steps") {
					step(t, want, got)
				}
				for _, key := range append(keys, sum) {
					same(t, want, got, command{"GET", key})
					require.Equal(t, expires(t, want, key), expires(t, got, key), key)
				}
			})
		})
	}
}

var (
	ctx  = context.Background()
	keys = []string{"a", "b", "c", "set"}
)

// A command is a command and its arguments.
type command []any

// step does one thing to both servers: a command, some in a transaction, or some in a script.
func step(t *rapid.T, want, got *redis.Client) {
	switch rapid.IntRange(0, 9).Draw(t, "how") {
	default:
		same(t, want, got, anyCommand(t, false))
	case 0:
		cmds := []command{anyCommand(t, true), anyCommand(t, true), anyCommand(t, true)}
		require.Equal(t, transaction(want, cmds), transaction(got, cmds), "transaction of %v", cmds)
	case 1:
		cmd := anyCommand(t, false)
		const script = "return redis.pcall(unpack(ARGV))"
		same(t, want, got, append(command{"EVAL", script, "0"}, cmd...))
	}
}

func same(t *rapid.T, want, got *redis.Client, cmd command) {
	require.Equal(t, reply(want.Do(ctx, cmd...)), reply(got.Do(ctx, cmd...)), "%v", cmd)
}

// expires reports whether a key has a time to live. How much is left of it depends on the clock.
func expires(t *rapid.T, c *redis.Client, key string) bool {
	left, err := c.PTTL(ctx, key).Result()
	require.NoError(t, err)
	return left > 0
}

func transaction(c *redis.Client, cmds []command) (replies []string) {
	pipe := c.TxPipeline()
	for _, cmd := range cmds {
		pipe.Do(ctx, cmd...)
	}
	results, err := pipe.Exec(ctx)
	for _, r := range results {
		replies = append(replies, reply(r.(*redis.Cmd)))
	}
	return append(replies, errorText(err))
}

func reply(cmd *redis.Cmd) string {
	value, err := cmd.Result()
	return fmt.Sprintf("%#v %s", value, errorText(err))
}

// errorText leaves out what Redis 7.0 adds about scripts.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	text, _, _ := strings.Cut(err.Error(), " script: ")
	return text
}

// sum gets the results of BITOP and never a time to live, which miniredis would leave to the next result.
const sum = "sum"

var (
	queuedNames = []string{"GET", "SET", "SET with options", "GETRANGE", "BITOP", "STRLEN", "EXISTS", "DEL", "UNLINK",
		"MGET", "MSETNX", "PEXPIRE", "PERSIST", "TYPE", "SADD", "SREM", "SISMEMBER", "SCARD"}
	commandNames = append([]string{"BITFIELD", "BITFIELD", "BITFIELD", "BITFIELD_RO", "BITCOUNT", "BITCOUNT range"},
		queuedNames...)
)

// anyCommand draws one of the commands that filters use.
func anyCommand(t *rapid.T, queued bool) command {
	names := commandNames
	if queued { // the in-process server has no BITFIELD there
		names = queuedNames
	}
	key := rapid.SampledFrom(keys).Draw(t, "key")
	number := func(name string, least, most int) string {
		return strconv.Itoa(rapid.IntRange(least, most).Draw(t, name))
	}
	value := func() string { return string(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "value")) }
	switch name := rapid.SampledFrom(names).Draw(t, "name"); name {
	case "BITFIELD", "BITFIELD_RO":
		return append(command{name, key}, operations(t, name == "BITFIELD_RO")...)
	case "SET":
		return command{name, key, value()}
	case "SET with options":
		options := []command{{"NX"}, {"XX"}, {"KEEPTTL"}, {"GET"}, {"PX", "100000"}, {"EX", "100"},
			{"PXAT", "4000000000000"}, {"NX", "PX", "100000"}, {"NX", "GET"}}
		return append(command{"SET", key, value()}, rapid.SampledFrom(options).Draw(t, "options")...)
	case "GETRANGE", "BITCOUNT range":
		return command{strings.Fields(name)[0], key, number("from", 0, 20), number("to", -20, 20)}
	case "BITOP":
		op := rapid.SampledFrom([]string{"OR", "AND", "XOR"}).Draw(t, "op")
		return command{name, op, sum, rapid.SampledFrom(keys).Draw(t, "from"), rapid.SampledFrom(keys).Draw(t, "and")}
	case "MSETNX":
		return command{name, key, value(), rapid.SampledFrom(keys).Draw(t, "second"), value()}
	case "PEXPIRE":
		return command{name, key, "200000"}
	case "SADD", "SREM", "SISMEMBER":
		return command{name, key, number("member", 0, 3)}
	case "MGET", "EXISTS":
		return command{name, key, rapid.SampledFrom(keys).Draw(t, "second")}
	default:
		return command{name, key}
	}
}

// operations draws subcommands of BITFIELD. A few are wrong.
func operations(t *rapid.T, onlyGet bool) (ops command) {
	kinds := []string{"GET", "SET", "set"}
	if onlyGet {
		kinds = []string{"GET", "GET", "GET", "get", "SET"}
	}
	for range rapid.IntRange(0, 6).Draw(t, "operations") {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		sign := rapid.SampledFrom([]string{"u", "i"}).Draw(t, "sign")
		bits := strconv.Itoa(rapid.IntRange(1, 64).Draw(t, "bits"))
		unit := rapid.SampledFrom([]string{"", "#"}).Draw(t, "unit")
		at := strconv.Itoa(rapid.IntRange(0, 20).Draw(t, "at"))
		ops = append(ops, kind, sign+bits, unit+at)
		if kind != "GET" && kind != "get" {
			number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-300, 300)).Draw(t, "number")
			ops = append(ops, strconv.FormatInt(number, 10))
		}
	}
	if rapid.IntRange(0, 19).Draw(t, "wrong") == 0 {
		ops = append(ops, rapid.SampledFrom(mistakes).Draw(t, "mistake")...)
	}
	return ops
}

var mistakes = []command{
	{"GET"}, {"GET", "u8"}, {"GET", "u08", "0"}, {"GET", "x8", "0"}, {"GET", "", "0"}, {"GET", "u8", "-1"},
	{"GET", "u8", "#"}, {"GET", "u8", "01"}, {"GET", "u64", "0"}, {"GET", "i65", "0"}, {"GET", "i0", "0"},
	{"SET", "u8", "0"}, {"SET", "u8", "0", "1.5"}, {"SET", "u8", "4294967296", "1"}, {"SET", "u8", "#536870912", "1"},
	{"SET", "u8", "0", "9223372036854775808"}, {"NO"},
}
