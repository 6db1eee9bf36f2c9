package redisfilter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/inprocess"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// cuckooServers runs a test on a Redis server and on the one inside the process.
func cuckooServers(t *testing.T, test func(t *testing.T, addr string)) {
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		test(t, redistest.Start(t).Addr)
	})
	t.Run("inprocess", func(t *testing.T) {
		t.Parallel()
		server, err := inprocess.Start()
		require.NoError(t, err)
		t.Cleanup(server.Close)
		test(t, server.Addr())
	})
}

// cuckooClient opens a client that ends with the test.
func cuckooClient(t *testing.T, o *redis.UniversalOptions) *redisfilter.Client {
	c := redistest.Opened(t, redisfilter.Open, redisfilter.ErrUnavailable, o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// newCuckoo opens a set of a client of its own; both end with the test.
func newCuckoo(t *testing.T, addr, name string, n int, rate float64, o redisfilter.Options) *redisfilter.Cuckoo {
	return cuckooOf(t, cuckooClient(t, &redis.UniversalOptions{Addrs: []string{addr}}), name, n, rate, o)
}

func cuckooOf(t *testing.T, c *redisfilter.Client, name string, n int, rate float64,
	o redisfilter.Options) *redisfilter.Cuckoo {
	if o.Timeout == 0 {
		o.Timeout = 24 * time.Hour // longer than a test: a slow machine is no outage
	}
	k, err := redisfilter.NewCuckoo(t.Context(), c, name, n, rate, &o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = k.Close() })
	return k
}

func cuckooKey(i int) []byte { return fmt.Appendf(nil, "key %d", i) }

func cuckooKeys(from, to int) (keys [][]byte) {
	for i := from; i < to; i++ {
		keys = append(keys, cuckooKey(i))
	}
	return keys
}

// The rate is so low that keys are not taken for each other.
func TestCuckooIsAMultiset(t *testing.T) {
	cuckooServers(t, func(t *testing.T, addr string) {
		set := newCuckoo(t, addr, "multiset", 3000, 2e-9, redisfilter.Options{StartEmpty: true, Partitions: 5})
		ctx, universe := t.Context(), 0
		property.Check(t, func(t *rapid.T) {
			universe += 10 // keys of its own
			model := map[int]int{}
			keys := rapid.Custom(func(t *rapid.T) int { return universe + rapid.IntRange(0, 9).Draw(t, "key") })
			t.Repeat(map[string]func(*rapid.T){
				"add": func(t *rapid.T) {
					i := keys.Draw(t, "key")
					err := set.Add(ctx, cuckooKey(i))
					switch {
					case model[i] == 8:
						require.ErrorIs(t, err, redisfilter.ErrTooManyCopies)
						return
					case mayBeFull(err, model):
						return
					}
					require.NoError(t, err)
					model[i]++
				},
				"addNew": func(t *rapid.T) {
					i := keys.Draw(t, "key")
					fresh, err := set.AddNew(ctx, cuckooKey(i))
					if mayBeFull(err, model) {
						return
					}
					require.NoError(t, err)
					require.Equal(t, model[i] == 0, fresh)
					model[i] = max(1, model[i])
				},
				"remove": func(t *rapid.T) {
					i := keys.Draw(t, "key")
					removed, err := set.Remove(ctx, cuckooKey(i))
					require.NoError(t, err)
					require.Equal(t, model[i] > 0, removed)
					model[i] = max(0, model[i]-1)
				},
				"": func(t *rapid.T) {
					maybe, err := set.MContains(ctx, cuckooKeys(universe, universe+10))
					require.NoError(t, err)
					for i, got := range maybe {
						require.Equal(t, model[universe+i] > 0, got)
					}
				},
			})
			for i, n := range model { // leave room
				for range n {
					_, err := set.Remove(ctx, cuckooKey(i))
					require.NoError(t, err)
				}
			}
		})
		info, err := set.Info(ctx)
		require.NoError(t, err)
		require.Zero(t, info.Keys)
	})
}

// mayBeFull reports whether an error is that keys with many copies fill their buckets: two that share one of them have
// twelve places.
func mayBeFull(err error, multiset map[int]int) bool {
	total := 0
	for _, copies := range multiset {
		total += copies
	}
	return errors.Is(err, redisfilter.ErrFull) && total >= 12
}

// Batches say of each key what single calls would.
func TestCuckooBatches(t *testing.T) {
	cuckooServers(t, func(t *testing.T, addr string) {
		ctx := t.Context()
		set := newCuckoo(t, addr, "batches", 20_000, 1e-6, redisfilter.Options{StartEmpty: true})
		// Scripts in process are slow on a busy machine, and a call has 30 s.
		batches := func(f func(context.Context, [][]byte) ([]bool, error), first, last int) (answers []bool) {
			for keys := range slices.Chunk(cuckooKeys(first, last), 1000) {
				some, err := f(ctx, keys)
				require.NoError(t, err)
				answers = append(answers, some...)
			}
			return answers
		}
		for keys := range slices.Chunk(cuckooKeys(0, 5000), 1000) {
			require.NoError(t, set.MAdd(ctx, keys))
		}
		fresh := batches(set.MAddNew, 4000, 10_000)
		removed := batches(set.MRemove, 9000, 11_000)
		maybe := batches(set.MContains, 0, 12_000)
		for i := range fresh {
			require.Equal(t, i >= 1000, fresh[i], i)
		}
		for i := range removed {
			require.Equal(t, i < 1000, removed[i], i)
		}
		for i := range maybe {
			require.Equal(t, i < 9000, maybe[i], i)
		}
		info, err := set.Info(ctx)
		require.NoError(t, err)
		require.InEpsilon(t, 9000, info.Keys, 0.02)
		require.InEpsilon(t, 9000.0/20_000*1e-6, info.FalsePositiveRate, 0.5)
		require.True(t, info.Loaded)
		require.Zero(t, info.Lost)
		require.Greater(t, info.Shards, 1)
	})
}

// A set that is full refuses keys, and says which; it forgets none for them.
func TestCuckooIsFull(t *testing.T) {
	ctx := t.Context()
	set := newCuckoo(t, redistest.Start(t).Addr, "full", 100, 1e-6, redisfilter.Options{StartEmpty: true})
	keys := cuckooKeys(0, 200)
	err := set.MAdd(ctx, keys)
	require.ErrorIs(t, err, redisfilter.ErrFull)
	var refused *redisfilter.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Empty(t, refused.TooManyCopies)
	require.Greater(t, refused.Full[0], 100)
	require.True(t, slices.IsSorted(refused.Full))
	maybe, err := set.MContains(ctx, keys)
	require.NoError(t, err)
	for i := range keys {
		require.Equal(t, !slices.Contains(refused.Full, i), maybe[i])
	}
	require.ErrorIs(t, set.Add(ctx, keys[refused.Full[0]]), redisfilter.ErrFull)
	_, err = set.MRemove(ctx, keys[:100])
	require.NoError(t, err)
	require.NoError(t, set.Add(ctx, keys[refused.Full[0]]))
}

// Of many processes that add a key at the same time one is told that it is new, and of many that
// remove it one that it was there.
func TestCuckooHasOneWinner(t *testing.T) {
	cuckooServers(t, func(t *testing.T, addr string) {
		const processes, keys = 6, 40
		var fresh, removed [keys]atomic.Int32
		var adding, removing sync.WaitGroup
		start := make(chan struct{})
		adding.Add(processes)
		for range processes {
			set := newCuckoo(t, addr, "winner", 1000, 1e-6, redisfilter.Options{StartEmpty: true})
			removing.Go(func() {
				<-start
				for i := range keys {
					is, err := set.AddNew(t.Context(), cuckooKey(i))
					if err != nil {
						t.Error(err)
					}
					if is {
						fresh[i].Add(1)
					}
				}
				adding.Done()
				adding.Wait()
				for i := range keys {
					was, err := set.Remove(t.Context(), cuckooKey(i))
					if err != nil {
						t.Error(err)
					}
					if was {
						removed[i].Add(1)
					}
				}
			})
		}
		close(start)
		removing.Wait()
		for i := range keys {
			require.EqualValues(t, 1, fresh[i].Load())
			require.EqualValues(t, 1, removed[i].Load())
		}
	})
}

func TestNewCuckooRefuses(t *testing.T) {
	c := cuckooClient(t, &redis.UniversalOptions{Addrs: []string{redistest.Start(t).Addr}})
	tooMany := int64(1) << 33 // an int of 32 bits has 0 of it, which is refused too
	for _, bad := range []struct {
		n    int
		rate float64
		o    redisfilter.Options
	}{
		{n: 0, rate: 0.01}, {n: -1, rate: 0.01}, {n: int(tooMany), rate: 0.01}, {n: 10, rate: 0}, {n: 10, rate: 1},
		{n: 10, rate: 1e-12}, {n: 10, rate: 0.01, o: redisfilter.Options{Growth: 2}},
		{n: 10, rate: 0.01, o: redisfilter.Options{ShardBytes: 80}},
		{n: 10, rate: 0.01, o: redisfilter.Options{ShardBytes: 1 << 20}},
		{n: 10, rate: 0.01, o: redisfilter.Options{Partitions: -1}},
		{n: 10, rate: 0.01, o: redisfilter.Options{Partitions: 1 << 30}},
	} {
		_, err := redisfilter.NewCuckoo(t.Context(), c, "refused", bad.n, bad.rate, &bad.o)
		require.Error(t, err, "%+v", bad)
	}
	_ = cuckooOf(t, c, "name", 1000, 0.01, redisfilter.Options{StartEmpty: true})
	_, err := redisfilter.NewCuckoo(t.Context(), c, "name", 1000, 0.01, &redisfilter.Options{PublicHash: true})
	require.ErrorIs(t, err, redisfilter.ErrMismatch)
	_, err = redisfilter.New(t.Context(), c, "name", 1000, 0.01, nil)
	require.ErrorIs(t, err, redisfilter.ErrMismatch)
}

// The size is known before the first load.
func TestCuckooInfoHasTheCapacityBeforeALoad(t *testing.T) {
	set := newCuckoo(t, redistest.Start(t).Addr, "new", 1000, 0.01, redisfilter.Options{})
	info, err := set.Info(t.Context())
	require.ErrorIs(t, err, redisfilter.ErrIncomplete)
	require.Equal(t, 1000, info.Capacity)
}

// What was dropped or closed answers nothing.
func TestCuckooEnds(t *testing.T) {
	ctx, addr := t.Context(), redistest.Start(t).Addr
	set := newCuckoo(t, addr, "ends", 1000, 0.01, redisfilter.Options{StartEmpty: true})
	require.NoError(t, set.Add(ctx, cuckooKey(1)))
	require.NoError(t, set.Drop(ctx))
	maybe, err := set.Contains(ctx, cuckooKey(2))
	require.True(t, maybe)
	require.ErrorIs(t, err, redisfilter.ErrDropped)
	_, err = set.Remove(ctx, cuckooKey(1))
	require.ErrorIs(t, err, redisfilter.ErrDropped)
	require.NoError(t, set.Close())
	require.ErrorIs(t, set.Add(ctx, cuckooKey(1)), redisfilter.ErrClosed)
	require.ErrorIs(t, set.Drop(ctx), redisfilter.ErrClosed)
	require.Empty(t, cuckooShards(t, addr, "ends"))
}

// cuckooShards returns the keys of a set's shards.
func cuckooShards(t *testing.T, addr, name string) []string {
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	shards, err := c.Keys(t.Context(), "sk:{"+name+"/*:0").Result()
	require.NoError(t, err)
	return shards
}
