package cuckootable

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// The same call again gets the same answers and does nothing, whatever has happened in between.
func TestCallsAreMadeOnce(t *testing.T) {
	onServers(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		shard := store(ctx, t, client, Shape{Bits: 13, Buckets: 100, Shards: 1})
		a, b := shard.Place(1), shard.Place(2)
		again := func(call calling) []Answer {
			answers, err := run(ctx, client, call)
			require.NoError(t, err)
			return answers
		}
		remove := shard.call(Remove, a)
		require.Equal(t, []Answer{Unchanged}, again(remove))
		add := shard.call(Add, a, b, a)
		require.Equal(t, []Answer{Changed, Changed, Changed}, again(add))
		require.Equal(t, []Answer{Unchanged}, again(remove), "a late copy of a removal must not remove what came later")
		addNew := shard.call(AddNew, b, shard.Place(3))
		require.Equal(t, []Answer{Unchanged, Changed}, again(addNew))
		before := shard.bytes(ctx, t)
		for range 3 {
			require.Equal(t, []Answer{Changed, Changed, Changed}, again(add))
			require.Equal(t, []Answer{Unchanged, Changed}, again(addNew))
			require.Equal(t, []Answer{Unchanged}, again(remove))
		}
		require.Equal(t, before, shard.bytes(ctx, t))
		require.Equal(t, 4, shard.table(ctx, t).Used())
		for _, call := range []calling{add, addNew, remove} {
			left := client.PTTL(ctx, call.Keys[1]).Val()
			require.Greater(t, left, Memory-20*time.Second)
			require.LessOrEqual(t, left, Memory)
		}
		known := shard.call(AddNew, a)
		require.Equal(t, []Answer{Unchanged}, again(known))
		require.Zero(t, client.Exists(ctx, known.Keys[1]).Val(), "what changes nothing leaves nothing")
	})
}

// A whole shard of the usual size fills as a table in memory does, and refuses what that refuses.
func TestScriptsFillShards(t *testing.T) {
	scale.OneGoroutine(t, "many clients are in TestConcurrentChanges")
	onServers(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		shard := store(ctx, t, client, Shape{Bits: 13, Buckets: 600, Shards: 1})
		table, random := shard.NewTable(), rand.New(rand.NewPCG(7, 8))
		refused := 0
		for refused == 0 {
			places := make([]Place, MaxPlaces)
			for at := range places {
				places[at] = shard.Place(random.Uint64())
			}
			for at, answer := range shard.change(ctx, t, Add, places...) {
				switch {
				case answer == Full:
					refused++
				case refused == 0:
					require.NoError(t, table.Add(places[at]))
				default: // the call looked for no room any more
					require.True(t, table.put(places[at].I, places[at].Fingerprint) ||
						table.put(places[at].J, places[at].Fingerprint))
				}
			}
		}
		require.Equal(t, table.Bytes(), shard.bytes(ctx, t))
		require.Greater(t, table.Used(), shard.Slots()*94/100)
	})
}

// Searches of scripts and of tables have one bound.
func TestSearchesHaveOneBound(t *testing.T) {
	require.Contains(t, searchLua, fmt.Sprintf("if n == %d then", maxSteps))
}

func TestCopiesAreLimitedInRedis(t *testing.T) {
	onServers(t, func(t *testing.T, client *redis.Client) {
		shard := store(t.Context(), t, client, Shape{Bits: 13, Buckets: 20, Shards: 1})
		p := shard.Place(5)
		require.Equal(t, "++++++++", string(toBytes(shard.change(t.Context(), t, Add, repeat(p, copies)...))))
		require.Equal(t, []Answer{TooManyCopies}, shard.change(t.Context(), t, Add, p))
		require.Equal(t, []Answer{Unchanged}, shard.change(t.Context(), t, AddNew, p))
		require.Equal(t, "++++++++--", string(toBytes(shard.change(t.Context(), t, Remove, repeat(p, copies+2)...))))
		require.Equal(t, shard.Blank(), shard.bytes(t.Context(), t))
	})
}

func repeat(p Place, n int) []Place {
	places := make([]Place, n)
	for at := range places {
		places[at] = p
	}
	return places
}

func toBytes(answers []Answer) (text []byte) {
	for _, a := range answers {
		text = append(text, byte(a))
	}
	return text
}

// Many clients add and remove keys of one shard at once; keys that no client removes are there at every moment.
func TestConcurrentChanges(t *testing.T) {
	onServers(t, func(t *testing.T, client *redis.Client) {
		workers, rounds := 8, scale.Fewer(60, 20)
		shard := store(t.Context(), t, client, Shape{Bits: 16, Buckets: 60, Shards: 1})
		var group sync.WaitGroup
		kept := make([]map[uint64]int, workers)
		for worker := range workers {
			kept[worker] = map[uint64]int{}
			group.Go(func() { shard.work(t, uint64(worker), rounds, kept[worker]) })
		}
		group.Wait()
		want := map[class]int{}
		used := 0
		for _, keys := range kept {
			for h, n := range keys {
				want[classOf(shard.Place(h))] += n
				used += n
			}
		}
		table := shard.table(t.Context(), t)
		require.Equal(t, used, table.Used())
		for _, keys := range kept {
			for h := range keys {
				require.Equal(t, want[classOf(shard.Place(h))], table.Copies(shard.Place(h)))
			}
		}
	})
}

// work adds and removes keys of its own, and looks for them. Twice as many keys as it keeps would
// fill the shard with those of the other workers.
func (s *stored) work(t *testing.T, worker uint64, rounds int, kept map[uint64]int) {
	ctx, random := t.Context(), rand.New(rand.NewPCG(9, worker))
	for range rounds {
		h := worker<<32 | random.Uint64N(12)
		op, delta := Add, 1
		if kept[h] > 0 && random.IntN(3) > 0 {
			op, delta = Remove, -1
		}
		call := s.call(op, s.Place(h))
		for range 1 + random.IntN(2) { // some are sent twice
			answers, err := run(ctx, s.client, call)
			if err != nil || answers[0] != Changed && answers[0] != Full && answers[0] != TooManyCopies {
				t.Errorf("%v: %s, %v", s.Place(h), toBytes(answers), err)
				return
			}
			if answers[0] != Changed {
				delta = 0
			}
		}
		kept[h] += delta
		for h, n := range kept {
			if found, err := s.copies(ctx, s.Place(h)); err != nil || found < n {
				t.Errorf("%d copies of %v instead of %d, %v", found, s.Place(h), n, err)
				return
			}
		}
	}
}

// A server that was restarted, or that took over, does not know the scripts.
func TestScriptsAreSentAgain(t *testing.T) {
	onServers(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		shard := store(ctx, t, client, Shape{Bits: 13, Buckets: 20, Shards: 1})
		p := shard.Place(5)
		shard.change(ctx, t, Add, p)
		require.NoError(t, client.ScriptFlush(ctx).Err())
		call := shard.call(Add, p)
		short := Add.Short(ctx, call.Call)
		require.True(t, conn.NoScript(client.Process(ctx, short)))
		_, err := Answers(short, 1)
		require.True(t, conn.NoScript(err))
		long := Add.Long(ctx, call.Call)
		require.NoError(t, client.Process(ctx, long))
		answers, err := Answers(long, 1)
		require.NoError(t, err)
		require.Equal(t, []Answer{Changed}, answers)
		require.NoError(t, client.ScriptFlush(ctx).Err())
		shard.change(ctx, t, Add, p)
		require.Equal(t, 3, shard.table(ctx, t).Used())
	})
}

// Scripts find the other bucket of every fingerprint where Go does.
func TestScriptsKnowTheOtherBucket(t *testing.T) {
	scale.OneGoroutine(t, "many clients are in TestConcurrentChanges")
	onServers(t, func(t *testing.T, client *redis.Client) {
		const luaOthers = `local others = {}
			for at = 7, #ARGV, 3 do
				others[#others + 1] = other_of(tonumber(ARGV[at]), tonumber(ARGV[at + 1]))
			end
			return others`
		op := conn.NewScript(tableLua + searchLua + luaOthers)
		random := rand.New(rand.NewPCG(3, 4))
		for bits := uint32(minBits); bits <= maxBits; bits++ {
			s := Shape{Bits: bits, Shards: 1}
			s.Buckets = 2 * (1 + random.Uint32N(s.mostBuckets(DefaultSize)/2))
			var places []Place
			for fingerprint := range uint32(min(s.values(), 2047)) {
				if bits > 11 {
					fingerprint = uint32(random.Uint64N(s.values()))
				}
				i := random.Uint32N(s.Buckets)
				places = append(places, Place{0, 1 + fingerprint, i, s.other(1+fingerprint, i)})
			}
			call := store(t.Context(), t, client, s).call(op, places...)
			cmd := op.Long(t.Context(), call.Call)
			require.NoError(t, client.Process(t.Context(), cmd))
			others, err := cmd.Int64Slice()
			require.NoError(t, err)
			require.Len(t, others, len(places))
			for at, p := range places {
				require.Equal(t, int64(p.J), others[at], "%+v %+v", s, p)
			}
		}
	})
}

// Whatever command of a script the server refuses, nothing has been done and nothing is remembered.
func TestScriptsThatFailChangeNothing(t *testing.T) {
	redistest.RequireReal(t)
	server := redistest.Start(t)
	ctx, client := t.Context(), server.Client()
	shard := store(ctx, t, client, Shape{Bits: 13, Buckets: 8, Shards: 1})
	for h := range uint64(26) { // the next key makes others move
		shard.change(ctx, t, Add, shard.Place(h))
	}
	before := shard.bytes(ctx, t)
	for _, command := range []string{"get", "getrange", "bitfield_ro", "set", "bitfield"} {
		require.NoError(t, client.ACLSetUser(ctx, command, "on", "nopass", "~*", "+@all", "-"+command).Err())
		limited := redis.NewClient(&redis.Options{Addr: server.Addr, Username: command, Password: "any"})
		for _, op := range []conn.Script{Add, AddNew, Remove} {
			h := uint64(3)
			if op == AddNew {
				h = 1000
			}
			call := shard.call(op, shard.Place(h))
			_, err := run(ctx, limited, call)
			require.Error(t, err, command)
			require.NotErrorIs(t, err, ErrLost)
			require.Equal(t, before, shard.bytes(ctx, t), command)
			require.Zero(t, client.Exists(ctx, call.Keys[1]).Val(), command)
		}
		require.NoError(t, limited.Close())
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add("lost", uint8(4))
	f.Add("+-fc", uint8(4))
	f.Add("", uint8(0))
	f.Add("++", uint8(1))
	f.Fuzz(func(t *testing.T, reply string, places uint8) {
		answers, err := decodeAnswers(reply, int(places))
		switch {
		case reply == "lost":
			require.ErrorIs(t, err, ErrLost)
		case len(reply) != int(places) || strings.Trim(reply, "+-fc") != "":
			require.ErrorIs(t, err, errReply)
		default:
			require.NoError(t, err)
			require.Equal(t, reply, string(toBytes(answers)))
		}
	})
}
