package owners

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// A tripCounter counts the times that a client waits for a server.
type tripCounter struct{ n atomic.Int64 }

func (c *tripCounter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *tripCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *tripCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if strings.Contains(fmt.Sprint(cmd.Args()), "/") { // not a poll
				c.n.Add(1)
				break
			}
		}
		return next(ctx, cmds)
	}
}

func TestTripsOfWindows(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	wt := setsTest{addrs: []string{s.Addr}, keys: 100, rate: 0.01}
	w, other := wt.open(t, 0), wt.open(t, 0)
	trips := &tripCounter{}
	require.NoError(t, w.Of("x").Add(t.Context(), []byte("the scripts are loaded")))
	w.stored.Conn.Watch.Stop()
	w.stored.Conn.RDB.AddHook(trips)
	takes := func(want int64, what string, f func() error) {
		t.Helper()
		before := trips.n.Load()
		require.NoError(t, f())
		require.Equal(t, want, trips.n.Load()-before, what)
	}
	ada := func() *Set { return w.Of("ada") } // a handle knows nothing
	add := func() error { return ada().Add(t.Context(), []byte("k")) }
	addNew := func() error { _, err := ada().AddNew(t.Context(), []byte("n")); return err }
	contains := func() error { _, err := ada().Contains(t.Context(), []byte("k")); return err }
	takes(1, "add that makes a window", add)
	takes(1, "add of a key that is new", addNew)
	takes(1, "add of a key that is not", addNew)
	takes(1, "lookup", contains)
	takes(1, "many adds", func() error { return ada().MAdd(t.Context(), numbered("item", 50)) })
	takes(1, "many lookups", func() error { _, err := ada().MContains(t.Context(), numbered("item", 50)); return err })
	require.NoError(t, other.Of("ada").MAdd(t.Context(), numbered("item", 1500)))
	takes(2, "the first lookup after others made it grow", func() error {
		_, err := ada().Contains(t.Context(), []byte("absent"))
		return err
	})
	takes(1, "the next", func() error { _, err := ada().Contains(t.Context(), []byte("missing")); return err })
	takes(1, "add to a later layer", func() error { return ada().Add(t.Context(), []byte("later")) })
}
