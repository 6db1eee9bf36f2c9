package nodes

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// What was confirmed counts for nothing once a node that is no master gave data, on whichever connection.
func TestDataOfAReplicaIsDoubted(t *testing.T) {
	redistest.RequireReal(t)
	ctx := t.Context()
	servers := redistest.StartCluster(t, 1, 1)
	w := New()
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: servers.Addrs(), OnConnect: w.OnConnect, ContextTimeoutEnabled: true, MaxRetries: -1,
	})
	w.Attend(c)
	require.NoError(t, w.Start(ctx, c))
	t.Cleanup(func() {
		w.Stop()
		require.NoError(t, c.Close())
	})
	for name, read := range map[string]func(*redis.Client){
		"command":  func(c *redis.Client) { _ = c.GetRange(ctx, "key", 0, 9).Err() }, // a replica answers MOVED
		"pipeline": func(c *redis.Client) { p := c.Pipeline(); p.GetRange(ctx, "key", 0, 9); _, _ = p.Exec(ctx) },
	} {
		doubted := map[bool]int{}
		for _, server := range servers.Servers {
			node := redis.NewClient(&redis.Options{Addr: server.Addr})
			node.AddHook(stranger{w, server.Addr})
			require.NoError(t, w.Poll(ctx))
			_, confirmed, ok := w.Map().Owner(7)
			require.True(t, ok, name)
			read(node)
			master := server.Info(ctx, "replication")["role"] == "master"
			require.Equal(t, master, confirmed.After(*w.doubt.Load()), name)
			doubted[master]++
			require.NoError(t, node.Close())
		}
		require.Equal(t, map[bool]int{true: 1, false: 1}, doubted, name)
	}
}
