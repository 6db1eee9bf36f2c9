package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// BenchmarkRedis compares sets with other filters on one real server, all of which hold the same keys:
//
//	fixed     a set of one size, 1 %
//	growing   a set whose third layer is half full, 1 %
//	cuckoo    a cuckoo set, 1 %, made for a quarter more
//	go-zero   github.com/zeromicro/go-zero/core/bloom at 20 bits a key, as it recommends: 14 bits by a script
//	plain     14 SETBIT or GETBIT of one string of 20 bits a key, in a pipeline
//	getrange  no filter: what go-redis takes to read 64 bytes
//
// go-zero's filter takes one key at a time. In batches its commands are collected and pipelined by hand. What each
// takes is measured in rounds that alternate, and the median for a key is reported. Reported are the main thread's
// time in the server (server-us), trips (commands or pipelines sent), the client's wait (ns/op), its time on
// processors (client-us) and allocations.
func BenchmarkRedis(b *testing.B) {
	a := newArena(b, 1_000_000)
	a.more(b)
	a.reportMemory(b)
	present := func(int) int { return 0 }
	absent := func(int) int { return 1 << 31 }
	fresh := func(round int) int { return 1<<32 + round<<24 }
	for _, op := range []struct {
		name  string
		op    Op
		first func(round int) int
	}{{"present", Contains, present}, {"absent", Contains, absent}, {"add", Add, fresh}} {
		for i, m := range []struct {
			name                  string
			count, batch, workers int
		}{{"one", 1500, 1, 1}, {"one-by-8", 6000, 1, 8}, {"batch-64", 6400, 64, 1}} {
			b.Run(op.name+"/"+m.name, func(b *testing.B) {
				a.compare(b, Request{Op: op.op, Count: m.count, Batch: m.batch, Workers: m.workers},
					func(round int) int { return op.first(round + i*16) })
			})
		}
	}
}

// An arena is a server with the contestants of a comparison.
type arena struct {
	server      *redistest.Server
	client      *redisfilter.Client
	trips       *Counter
	keys        int // that all contestants hold
	contestants []contestant
}

type contestant struct {
	name   string
	values string // a pattern of the Redis keys of its values
	size   int    // keys that it was made for
	reads  bool   // it does nothing else
	run    func(Request) (Result, error)
}

// newArena fills the contestants that the targets are about, a set of one size and go-zero's filter, with n
// keys. more adds the others.
func newArena(t testing.TB, n int) *arena {
	redistest.RequireReal(t)
	a := &arena{server: redistest.Start(t), keys: n}
	a.client, a.trips = openCounted(t, a.server.Addr)
	fixed := openBenched(t, a.client, a.trips, "fixed", n, 0)
	importAll(t, fixed.set, Keys(0, n))
	const bitsOfKey = 20 // the comment at go-zero's bloom.New
	theirs, err := openGoZero(a.server.Addr, "go-zero", uint(bitsOfKey*n))
	require.NoError(t, err)
	require.NoError(t, theirs.fill(t.Context(), Keys(0, n)))
	a.contestants = []contestant{
		{"fixed", "sk:{fixed*", n, false, here(fixed)},
		{"go-zero", "go-zero", n, false, here(theirs)},
		{"getrange", "", 0, true, here(newBareRead(t, a.server.Addr, anyShard(t, a.server.Client(), "fixed")))},
	}
	return a
}

func (a *arena) more(t testing.TB) {
	keys := Keys(0, a.keys)
	growing := openBenched(t, a.client, a.trips, "growing", a.keys/64, 10) // two layers are full
	addAll(t, growing.set, keys)
	room := a.keys + a.keys/4
	cuckoo := openBenchedCuckoo(t, a.client, a.trips, "cuckoo", room)
	addAll(t, cuckoo.set, keys)
	const bitsOfKey = 20
	plain := newPlainBits(t, a.server.Addr, "plain", uint64(bitsOfKey*a.keys))
	plain.fill(t, keys)
	a.contestants = append(a.contestants,
		contestant{"growing", "sk:{growing*", a.keys, false, here(growing)},
		contestant{"cuckoo", "sk:{cuckoo/*:0", room, false, here(cuckoo)},
		contestant{"plain", "plain", a.keys, false, here(plain)},
	)
}

// here runs a subject in this process.
func here(s Subject) func(Request) (Result, error) {
	return func(r Request) (Result, error) { return Run(context.Background(), s, r) }
}

// A cost is what a run took, of a key.
type cost struct{ server, trips, elapsed, client, allocs float64 }

// measure runs a workload and returns its cost.
func (a *arena) measure(t testing.TB, c contestant, r Request) cost {
	before := a.server.CPU(t.Context())
	result, err := c.run(r)
	require.NoError(t, err, c.name)
	used := a.server.CPU(t.Context()) - before
	if r.Op == Contains && r.First == 0 {
		require.Equal(t, r.Count, result.Yes, "%s must know the keys that it has", c.name)
	}
	n := float64(r.Count)
	return cost{float64(used) / float64(time.Microsecond) / n, float64(result.Trips) / n,
		float64(result.Elapsed) / n, float64(result.CPU) / float64(time.Microsecond) / n, float64(result.Mallocs) / n}
}

const rounds = 7

// costs measures a workload in rounds that alternate between contestants, and returns the median of each. The
// first key of a round is what first says.
func (a *arena) costs(t testing.TB, r Request, first func(round int) int) map[string]cost {
	all := map[string][]cost{}
	for round := range rounds {
		for _, c := range a.contestants {
			if c.reads && r.Op != Contains {
				continue
			}
			r.First = first(round)
			all[c.name] = append(all[c.name], a.measure(t, c, r))
		}
	}
	medians := map[string]cost{}
	for name, costs := range all {
		medians[name] = median(costs)
	}
	return medians
}

func median(costs []cost) cost {
	of := func(part func(cost) float64) float64 {
		values := make([]float64, len(costs))
		for i, c := range costs {
			values[i] = part(c)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return cost{
		server: of(func(c cost) float64 { return c.server }), trips: of(func(c cost) float64 { return c.trips }),
		elapsed: of(func(c cost) float64 { return c.elapsed }),
		client:  of(func(c cost) float64 { return c.client }), allocs: of(func(c cost) float64 { return c.allocs }),
	}
}

// reportMemory reports what the values of each contestant occupy, as MEMORY USAGE says.
func (a *arena) reportMemory(b *testing.B) {
	for _, c := range a.contestants {
		if c.values == "" {
			continue
		}
		each := float64(memoryOf(b, a.server.Client(), c.values)) / float64(c.size)
		report(b, "memory/"+c.name, c.size, figure{0, "ns/op"}, figure{each, "bytes/key"})
	}
}

// A figure is what a benchmark reports.
type figure struct {
	value float64
	unit  string
}

// report shows what was measured before, over so many operations, as a benchmark of its own.
func report(b *testing.B, name string, ops int, figures ...figure) {
	b.Run(name, func(b *testing.B) {
		b.N = ops //nolint:staticcheck // so that it is what the figures are medians or means of
		for _, f := range figures {
			b.ReportMetric(f.value, f.unit)
		}
	})
}

// compare reports the costs of all contestants, each as a benchmark of its own.
func (a *arena) compare(b *testing.B, r Request, first func(round int) int) {
	costs := a.costs(b, r, first)
	for _, c := range a.contestants {
		cost, ok := costs[c.name]
		if !ok {
			continue
		}
		report(b, c.name, rounds*r.Count, figure{cost.elapsed, "ns/op"}, figure{cost.client, "client-us/op"},
			figure{cost.server, "server-us/op"}, figure{cost.trips, "trips/op"}, figure{cost.allocs, "mallocs/op"})
	}
}
