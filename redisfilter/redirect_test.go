package redisfilter

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// A master hangs, its replica is promoted, and the master goes on. A dialer has led to the replica
// since, while connections to the master lie idle in the pool.
func TestAMasterThatComesBackIsNotBelieved(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	ctx := t.Context()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	var addr atomic.Pointer[string]
	addr.Store(&master.Addr)
	c, err := Open(ctx, &redis.UniversalOptions{
		Addrs: []string{master.Addr}, PoolSize: 16, ReadTimeout: patience,
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, *addr.Load())
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	s := wholeSet(t, c, "users", 1000, Options{})

	askAtOnce := func(f func()) {
		var all sync.WaitGroup
		for range 32 {
			all.Go(f)
		}
		all.Wait()
	}
	until(t, func() bool {
		askAtOnce(func() { _, _ = s.Contains(ctx, key(1)) })
		return conn.Of(c).RDB.PoolStats().IdleConns >= 8
	}, "idle connections")
	master.AwaitReplicas(ctx, 1)
	master.Stop()
	var hanging sync.WaitGroup
	for range conn.Of(c).RDB.PoolStats().IdleConns {
		hanging.Go(func() { _, _ = s.Contains(ctx, key(1)) })
	}
	addr.Store(&replica.Addr)
	replica.Promote(ctx)
	other := openSet(t, openClient(t, replica.Addr), "users", 1000, Options{Source: sourceOf()})
	require.NoError(t, other.Ready(ctx))
	promoted := replica.Info(ctx, "server")["run_id"] + "/" + replica.Info(ctx, "replication")["master_replid"]
	until(t, func() bool {
		owner, _, ok := conn.Of(c).Watch.Map().Owner(0)
		return ok && owner == promoted && s.view.Load().trusted[owner]
	}, "the promoted replica is trusted")
	require.NoError(t, other.MAdd(ctx, keysTo(100)))
	master.Continue()
	hanging.Wait()
	var denied atomic.Int64
	for range 50 {
		askAtOnce(func() {
			maybe, _ := s.MContains(ctx, keysTo(100))
			for _, m := range maybe {
				if !m {
					denied.Add(1)
				}
			}
		})
	}
	require.Zero(t, denied.Load(), "keys that were acknowledged")
}
