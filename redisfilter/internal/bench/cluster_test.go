package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// A nodeHook counts the pipelines of keys that go to one node, and lets none pass before there is one
// for each node if meet is set.
type nodeHook struct {
	Counter
	meet *atomic.Pointer[meeting]
}

func (h *nodeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *nodeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	count := h.Counter.ProcessPipelineHook(next)
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if name := cmds[0].Name(); name != "getrange" && name != "bitfield" {
			return next(ctx, cmds) // a poll
		}
		if m := h.meet.Load(); m != nil {
			if err := m.await(ctx); err != nil {
				return err
			}
		}
		return count(ctx, cmds)
	}
}

// A meeting waits for a number of pipelines.
type meeting struct {
	missing atomic.Int32
	met     chan struct{}
	once    sync.Once
}

func newMeeting(n int32) *meeting {
	m := &meeting{met: make(chan struct{})}
	m.missing.Store(n)
	return m
}

func (m *meeting) await(ctx context.Context) error {
	if m.missing.Add(-1) == 0 {
		m.once.Do(func() { close(m.met) })
	}
	select {
	case <-m.met:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hookNodes hooks the clients of a cluster's masters.
func hookNodes(t testing.TB, c *redisfilter.Client) (hooks []*nodeHook, meet *atomic.Pointer[meeting]) {
	meet = &atomic.Pointer[meeting]{}
	var mu sync.Mutex
	cluster := conn.Of(c).RDB.(*redis.ClusterClient)
	err := cluster.ForEachMaster(t.Context(), func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		hooks = append(hooks, &nodeHook{meet: meet})
		node.AddHook(hooks[len(hooks)-1])
		return nil
	})
	require.NoError(t, err)
	return hooks, meet
}

func TestBatchesGoToEachNodeOnceAndAtOnce(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	c, trips := openCounted(t, cluster.Addrs()...)
	hooks, meet := hookNodes(t, c)
	require.Len(t, hooks, 3)
	fixed := openBenched(t, c, trips, "fixed", 100_000, 0)
	o := redisfilter.Options{Growth: 10, Partitions: 64, StartEmpty: true}
	growing, err := redisfilter.New(t.Context(), c, "growing", 100_000, 0.01, &o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, growing.Close()) })
	keys := Keys(0, 1000)
	for _, b := range []struct {
		name   string
		set    *redisfilter.Set
		op     Op
		trips  int64
		lookup int64 // commands of all
		add    int64
	}{
		{"add, fixed", fixed.set, Add, 1, 0, 1000},
		{"lookup, fixed", fixed.set, Contains, 1, 1000, 0},
		{"add, growing", growing, Add, 2, 1128, 1000},      // the headers twice
		{"lookup, growing", growing, Contains, 1, 1064, 0}, // a line of each key, a header of each partition
	} {
		t.Run(b.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var before []int64
			for i, h := range hooks {
				before = append(before, h.Trips())
				cluster.Servers[i].ResetStats(ctx)
			}
			if b.trips == 1 {
				meet.Store(newMeeting(3)) // were they one after the other, the first would wait for ever
				defer meet.Store(nil)
			}
			yes, err := benched[*redisfilter.Set]{trips, b.set}.Do(ctx, b.op, keys)
			require.NoError(t, err)
			if b.op == Contains {
				require.Equal(t, len(keys), yes)
			}
			lookups, adds := int64(0), int64(0)
			for i, h := range hooks {
				require.Equal(t, b.trips, h.Trips()-before[i], "pipelines to a node")
				counts := cluster.Servers[i].CommandCounts(ctx)
				require.NotZero(t, counts["getrange"]+counts["bitfield"], "each node has its share")
				lookups, adds = lookups+counts["getrange"], adds+counts["bitfield"]
			}
			require.Equal(t, []int64{b.lookup, b.add}, []int64{lookups, adds})
		})
	}
}

// BenchmarkCluster is batches on a cluster of three masters. An op is a key; server-us is that of all three.
func BenchmarkCluster(b *testing.B) {
	cluster := redistest.StartCluster(b, 3, 0)
	c, trips := openCounted(b, cluster.Addrs()...)
	hooks, _ := hookNodes(b, c)
	const n = 1_000_000
	set := openBenched(b, c, trips, "fixed", n, 0)
	importAll(b, set.set, Keys(0, n))
	used := func() (all time.Duration) {
		for _, s := range cluster.Servers {
			all += s.CPU(b.Context())
		}
		return all
	}
	for _, op := range []Op{Contains, Add} {
		for _, batch := range []int{64, 1000} {
			r := Request{Op: op, Count: 50 * batch, Batch: batch, Workers: 1}
			n := float64(r.Count)
			var costs []cost
			for range rounds {
				sent, server := hooks[0].Trips(), used()
				result, err := Run(b.Context(), set, r)
				require.NoError(b, err)
				costs = append(costs, cost{
					server:  float64(used()-server) / float64(time.Microsecond) / n,
					trips:   float64(hooks[0].Trips()-sent) * float64(batch) / n,
					elapsed: float64(result.Elapsed) / n,
				})
			}
			m := median(costs)
			report(b, fmt.Sprintf("%s/batch-%d", op, batch), rounds*r.Count, figure{m.elapsed, "ns/op"},
				figure{m.server, "server-us/op"}, figure{m.trips, "pipelines/node/batch"})
		}
	}
}
