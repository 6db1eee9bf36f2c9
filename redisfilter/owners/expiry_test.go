package owners

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// valuesOf calls f with each value of a server that belongs to an owner.
func valuesOf(t testing.TB, c *redis.Client, f func(key string)) {
	t.Helper()
	keys := c.Scan(t.Context(), 0, "sk:{feed/*", 1000).Iterator()
	for keys.Next(t.Context()) {
		f(keys.Val())
	}
	require.NoError(t, keys.Err())
}

func TestWindowsExpire(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t) // time stands still in the stand-in
	s := redistest.Start(t)
	const keep = 2
	w := setsTest{
		addrs: []string{s.Addr}, keys: 20, rate: 0.01, period: minPeriod, keep: keep,
	}.open(t, 0)
	f, key := w.Of("ada"), []byte("k")
	now := func() time.Time { return s.Client().Time(t.Context()).Val() }
	begun := now() // the key is added later, and so is forgotten later
	require.NoError(t, f.Add(t.Context(), key))
	require.NoError(t, w.Of("eve").MAdd(t.Context(), numbered("item", 500))) // of three layers
	valuesOf(t, s.Client(), func(key string) {
		left := s.Client().PTTL(t.Context(), key).Val()
		require.True(t, left >= 0 && left <= keep*minPeriod || left == -2, "%s lives %v", key, left)
	})
	redistest.Await(t, "the key is forgotten", func() bool {
		maybe, err := f.Contains(t.Context(), key)
		require.NoError(t, err)
		return !maybe
	})
	require.Greater(t, now().Sub(begun), (keep-1)*minPeriod-minPeriod/10)
	redistest.Await(t, "no value is left", func() bool {
		left := 0
		valuesOf(t, s.Client(), func(string) { left++ })
		return left == 0
	})
}

// Whatever happens to values, none is left that never ends.
func TestEachValueOfAnOwnerEnds(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	s := redistest.Start(t, "--maxmemory", "2500kb", "--maxmemory-policy", "allkeys-random")
	clock := &manualClock{}
	const period = generousTimeout / 2
	wt := setsTest{
		addrs: []string{s.Addr}, keys: 30, rate: 0.01, clock: clock, period: period, keep: 3,
	}
	var group sync.WaitGroup
	for worker := range 6 {
		w := wt.open(t, time.Duration(worker)*time.Hour)
		group.Go(func() {
			for i := range 150 {
				f := w.Of(fmt.Sprint("owner", rand.IntN(400)))
				switch rand.IntN(4) {
				case 0:
					clock.advance(period / 60)
				case 1:
					if key := s.Client().RandomKey(t.Context()).Val(); strings.Contains(key, "/") {
						s.Client().Del(t.Context(), key)
					}
				case 2:
					s.Client().ScriptFlush(t.Context())
				}
				worked(t, f.MAdd(t.Context(), numbered(fmt.Sprint("item", i), 1+rand.IntN(100))))
				_, err := f.MAddNew(t.Context(), numbered("item", 20))
				worked(t, err)
				_, err = f.MContains(t.Context(), numbered("item", 20))
				worked(t, err)
			}
		})
	}
	group.Wait()
	require.NotEqual(t, "0", s.Info(t.Context(), "stats")["evicted_keys"])
	// The server may have given its last value for what its clients need. Some owners come back to one with room.
	require.NoError(t, s.Client().ConfigSet(t.Context(), "maxmemory", "0").Err())
	w := wt.open(t, 0)
	for owner := range 20 {
		require.NoError(t, w.Of(fmt.Sprint("owner", owner)).MAdd(t.Context(), numbered("item", 20)))
	}
	values := 0
	valuesOf(t, s.Client(), func(key string) {
		values++
		left := s.Client().PTTL(t.Context(), key).Val()
		require.True(t, left >= 0 && left <= 3*period || left == -2, "%s lives %v", key, left)
	})
	require.GreaterOrEqual(t, values, 20)
}

// worked accepts that a server refuses to add where its clients take the memory.
func worked(t *testing.T, err error) {
	if err != nil && !strings.Contains(err.Error(), "OOM ") {
		t.Error(err)
	}
}

func TestAddsMendWhatWouldNeverEnd(t *testing.T) {
	t.Parallel()
	s, w := windowsOfAda(t)
	valuesOf(t, s.Client(), func(key string) {
		require.True(t, s.Client().Persist(t.Context(), key).Val())
	})
	require.NoError(t, w.Of("ada").Add(t.Context(), []byte("another")))
	valuesOf(t, s.Client(), func(key string) {
		require.Positive(t, s.Client().PTTL(t.Context(), key).Val())
	})
}
