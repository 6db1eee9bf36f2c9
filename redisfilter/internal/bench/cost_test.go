package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// Of a key, alone or in a batch, the server runs one command on as many bytes as a cache line has. go-zero's
// filter takes a script and its probes: twice as many for a key that the second probe misses, and 15 for others.
// What a command costs shows in BenchmarkRedis.
func TestTheServerRunsOneCommandForAKey(t *testing.T) {
	t.Parallel()
	a := newArena(t, 50_000)
	const keys = 3200
	for _, c := range []struct {
		name    string
		op      Op
		first   int
		command string
		theirs  int // at least
	}{
		{"present", Contains, 0, "getrange", 15 * keys},
		{"absent", Contains, 1 << 31, "getrange", 2 * keys},
		{"add", Add, 1 << 32, "bitfield", 15 * keys},
	} {
		for _, batch := range []int{1, 64} {
			r := Request{Op: c.op, First: c.first, Count: keys, Batch: batch, Workers: 1}
			require.Equal(t, map[string]int{c.command: keys}, a.commands(t, "fixed", r), c.name)
			theirs := 0
			for _, n := range a.commands(t, "go-zero", r) {
				theirs += n
			}
			require.GreaterOrEqual(t, theirs, c.theirs, c.name)
		}
	}
}

// commands runs a workload and returns how often the server ran which command for it, but for what polls
// ask and what connections begin with.
func (a *arena) commands(t testing.TB, name string, r Request) map[string]int {
	a.server.ResetStats(t.Context())
	for _, c := range a.contestants {
		if c.name == name {
			a.measure(t, c, r)
		}
	}
	counts := map[string]int{}
	for command, n := range a.server.CommandCounts(t.Context()) {
		command, _, _ = strings.Cut(command, "|")
		switch command {
		case "info", "persist", "get", "hkeys", "smembers", "config", "hello", "client", "ping":
		default:
			counts[command] = int(n)
		}
	}
	return counts
}

func TestMemoryOfAKeyIsAsPromised(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t) // the stand-in does not know what its values occupy
	server := redistest.Start(t)
	c, trips := openCounted(t, server.Addr)
	for _, n := range []int{1_000_000, 5_000_000} {
		name := fmt.Sprint("set", n)
		openBenched(t, c, trips, name, n, 0)
		each := float64(memoryOf(t, server.Client(), "sk:{"+name+"*")) / float64(n)
		t.Logf("%d keys at 1 %%: %.3f bytes each", n, each)
		require.LessOrEqual(t, each, 1.30)
	}
}
