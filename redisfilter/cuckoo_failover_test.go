package redisfilter_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// A server that was restarted has forgotten everything, or an unknown part of it.
func TestCuckooLoadsAfterARestart(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	server := redistest.Start(t)
	table := newCuckooRows(cuckooKeys(0, 500))
	set := newCuckoo(t, server.Addr, "restart", 1000, 1e-6,
		redisfilter.Options{Source: table.source, Grace: time.Millisecond})
	ready(t, set)
	server.Kill()
	server.Restart()
	for i := range 500 {
		maybe, _ := set.Contains(t.Context(), cuckooKey(i))
		require.True(t, maybe)
	}
	denies(t, set, cuckooKeys(1000, 1001))
	maybe, err := set.MContains(t.Context(), cuckooKeys(0, 500))
	require.NoError(t, err)
	require.NotContains(t, maybe, false)
}

// One master of a cluster fails in the middle of adds and removals, and its replica takes over.
func TestCuckooOutlivesAFailover(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	cluster := redistest.StartCluster(t, 3, 1)
	ctx := t.Context()
	const programs, each, grace = 3, 800, 500 * time.Millisecond
	table := newCuckooRows(cuckooKeys(0, 500))
	c := cuckooClient(t, &redis.UniversalOptions{Addrs: cluster.Addrs()})
	set := cuckooOf(t, c, "failover", 4000, 1e-6,
		redisfilter.Options{Source: table.source, Partitions: 12, Grace: grace})
	ready(t, set)
	var group, underWay sync.WaitGroup
	underWay.Add(programs)
	for program := range programs {
		group.Go(func() {
			quarter := sync.OnceFunc(underWay.Done)
			defer quarter()
			first := 1000 * (program + 1)
			addAndRemove(t, set, table, grace, first, first+each, func(left int) {
				if left < each*3/4 {
					quarter()
				}
			})
		})
	}
	underWay.Wait()
	old := cluster.KillMasterOf(ctx, "sk:{failover/3}:x")
	cluster.AwaitFailover(ctx, "sk:{failover/3}:x", old)
	group.Wait()
	denies(t, set, cuckooKeys(9000, 9100))
	maybe, err := set.MContains(ctx, table.keys())
	require.NoError(t, err)
	require.NotContains(t, maybe, false)
}

// addAndRemove adds keys, commits a row for each and deletes every third of the rows again. It tells how many keys
// are left. A key whose add failed, or took longer than a transaction may, gets another turn after the others, as a
// program does that must commit its row. With another key in its place, a set whose servers are away for long would
// get more keys than it has room for.
func addAndRemove(t *testing.T, set *redisfilter.Cuckoo, table *cuckooRows, grace time.Duration, first, last int,
	tell func(left int)) {
	ctx := t.Context()
	var todo []int
	for i := first; i < last; i++ {
		todo = append(todo, i)
	}
	for len(todo) > 0 && ctx.Err() == nil {
		i := todo[0]
		todo = todo[1:]
		begun := time.Now()
		if set.Add(ctx, cuckooKey(i)) != nil || !table.commit(cuckooKey(i), begun.Add(grace)) {
			todo = append(todo, i)
			time.Sleep(10 * time.Millisecond)
			continue
		}
		switch i % 3 {
		case 0:
			table.delete(cuckooKey(i))
			_, _ = set.Remove(ctx, cuckooKey(i))
		case 1:
			if maybe, err := set.Contains(ctx, cuckooKey(i)); !maybe {
				t.Errorf("key %d is denied, %v", i, err)
				return
			}
		}
		tell(len(todo))
	}
}
