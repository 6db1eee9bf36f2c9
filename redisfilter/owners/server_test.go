package owners

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// The promised rate holds over all windows, with all of their layers.
func TestFalsePositivesOfWindows(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	clock := &manualClock{}
	const keep, rate = 4, 0.02
	perWindow, layers, probes := 3000, 4, 20_000
	if !s.Real() {
		perWindow, layers, probes = 200, 2, 5_000
	}
	f := setsTest{
		addrs: []string{s.Addr}, keys: 25, rate: rate, clock: clock, period: time.Hour, keep: keep,
	}.open(t, 0).Of("ada")
	for window := range keep {
		require.NoError(t, f.MAdd(t.Context(), numbered(fmt.Sprint("window", window), perWindow)))
		if window < keep-1 {
			clock.advance(time.Hour)
		}
	}
	info, err := f.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, keep, info.Windows)
	require.Equal(t, layers, info.Layers)
	require.InEpsilon(t, keep*perWindow, info.Keys, 0.03)
	require.Less(t, info.FalsePositiveRate, rate)
	for window := range keep {
		maybe, err := f.MContains(t.Context(), numbered(fmt.Sprint("window", window), perWindow))
		require.NoError(t, err)
		require.Equal(t, perWindow, count(maybe))
	}
	n := 0.0
	for keys := range slices.Chunk(numbered("absent", probes), 1000) {
		maybe, err := f.MContains(t.Context(), keys)
		require.NoError(t, err)
		n += float64(count(maybe))
	}
	require.Less(t, n, float64(probes)*rate, "the promise")
	require.InDelta(t, float64(probes)*info.FalsePositiveRate, n, 5*math.Sqrt(float64(probes)*rate), "the theory")
}

// The hash is the public one: under a secret, 1 window of 150 has so many bits of 100 keys that it takes on a layer.
func TestMemoryOfAnOwner(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	s := redistest.Start(t)
	for _, c := range []struct {
		n, keys, keep int
		most          int64
	}{
		{110, 100, 7, 450}, {1100, 1000, 7, 2900}, {1100, 1000, 1, 2100}, {110, 1000, 7, 3700},
	} {
		// Windows that are still open when the keys go would put their configuration back.
		t.Run(fmt.Sprint(c.n, c.keys, c.keep), func(t *testing.T) {
			require.NoError(t, s.Client().FlushAll(t.Context()).Err())
			f := setsTest{
				addrs: []string{s.Addr}, keys: c.n, rate: 0.01, keep: c.keep, public: true,
			}.open(t, 0).Of("ada")
			require.NoError(t, f.MAdd(t.Context(), numbered("item", c.keys)))
			used := int64(0)
			valuesOf(t, s.Client(), func(key string) { used += s.MemoryUsage(t.Context(), key) })
			t.Logf("%d keys in windows for %d, %d kept: %d bytes a window", c.keys, c.n, c.keep, used)
			require.LessOrEqual(t, used, c.most)
		})
	}
}

func TestWindowsOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	clock := &manualClock{}
	wt := setsTest{
		addrs: cluster.Addrs(), keys: 20, rate: 0.001, clock: clock, period: time.Hour, keep: 3,
	}
	w, other := wt.open(t, 0), wt.open(t, time.Hour)
	const owners = 60
	for i := range owners {
		f := w.Of(fmt.Sprint("owner", i))
		require.NoError(t, f.MAdd(t.Context(), numbered(fmt.Sprint("item", i), 30)))
	}
	clock.advance(time.Hour)
	for i := range owners {
		f := other.Of(fmt.Sprint("owner", i))
		fresh, err := f.MAddNew(t.Context(), numbered(fmt.Sprint("item", i), 31))
		require.NoError(t, err)
		require.Zero(t, count(fresh[:30]))
		maybe, err := f.MContains(t.Context(), append(numbered(fmt.Sprint("item", i), 31), []byte("absent")))
		require.NoError(t, err)
		require.Equal(t, 31, count(maybe[:31]))
	}
	var mu sync.Mutex
	nodes := map[string]int{}
	err := cluster.Client().ForEachMaster(t.Context(), func(ctx context.Context, c *redis.Client) error {
		n, err := c.DBSize(ctx).Result()
		mu.Lock()
		defer mu.Unlock()
		nodes[c.Options().Addr] = int(n)
		return err
	})
	require.NoError(t, err)
	require.Len(t, nodes, 3)
	for addr, n := range nodes {
		require.Greater(t, n, owners/3, addr)
	}
	info, err := w.Of("owner7").Info(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, info.Layers, 2)
	require.NoError(t, w.Of("owner7").Drop(t.Context()))
	info, err = w.Of("owner7").Info(t.Context())
	require.NoError(t, err)
	require.Zero(t, info.Keys+info.Windows+info.Layers)
	maybe, err := w.Of("owner7").MContains(t.Context(), numbered("item7", 30))
	require.NoError(t, err)
	require.Zero(t, count(maybe))
}
