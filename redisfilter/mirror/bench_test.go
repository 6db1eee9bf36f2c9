package mirror_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
	"github.com/siftkv/siftkv/redisfilter/mirror"
)

// large is a mirror of a set of 10,000,000 keys at 1 %, 3,100 shards of 4 KB, some of whose keys are there. Another
// process adds 100 keys per second until the test ends.
func large(t testing.TB, present int) *mirror.Mirror {
	ctx := context.Background()
	addr := []string{redistest.Start(t).Addr}
	const n, rate = 10_000_000, 0.01
	o := patient(redisfilter.Options{StartEmpty: true})
	r := mirrorOf(t, process(t, addr, "large", n, rate, o), nil)
	require.InDelta(t, 3100, len(mirror.Table(r).Parts), 200)
	other := process(t, addr, "large", n, rate, o)
	for i := 0; i < present; i += 10_000 {
		keys := make([][]byte, 10_000)
		for k := range keys {
			keys[k] = keyOf(i + k)
		}
		require.NoError(t, other.MAdd(ctx, keys))
	}
	adding, stop := context.WithCancel(ctx)
	var adder sync.WaitGroup
	adder.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := 0; adding.Err() == nil; i++ {
			<-tick.C
			if err := other.Add(ctx, keyOf(-1-i)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	t.Cleanup(func() {
		stop()
		adder.Wait()
	})
	until(t, func() bool { s := r.Stats(); return s.Dirty < 100 }, "too many copies are to be fetched")
	return r
}

// share is which part of the answers from a to b took no trip.
func share(a, b mirror.Stats) float64 {
	here := float64(b.Yes - a.Yes + b.No - a.No)
	return here / (here + float64(b.Asked-a.Asked))
}

func TestMirrorAnswersNearlyAllWithoutATrip(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	ctx := context.Background()
	r := large(t, 10_000)
	until(t, func() bool { // on a busy machine the first second may not do
		before, begin := r.Stats(), time.Now()
		for i := 0; time.Since(begin) < time.Second; i++ {
			maybe, err := r.Contains(ctx, keyOf(rand.IntN(20_000)))
			require.NoError(t, err)
			_ = maybe
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		got := share(before, r.Stats())
		t.Logf("%.2f %% of the answers", 100*got)
		return got >= 0.95
	}, "too many trips")
	for i := range 10_000 {
		maybe, err := r.Contains(ctx, keyOf(i))
		require.NoError(t, err)
		require.True(t, maybe)
	}
}

func BenchmarkMirror(b *testing.B) {
	redistest.RequireReal(b)
	ctx := context.Background()
	const present = 1_000_000
	r := large(b, present)
	for _, test := range []struct {
		name        string
		first, keys int
	}{{"present", 0, present}, {"absent", present, 100 * present}} {
		b.Run(test.name, func(b *testing.B) {
			before := r.Stats()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				key := keyOf(1_000_000)
				source := rand.New(rand.NewPCG(rand.Uint64(), 1))
				for pb.Next() {
					key = appendKey(key[:0], test.first+source.IntN(test.keys))
					if _, err := r.Contains(ctx, key); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(100*share(before, r.Stats()), "%local")
		})
	}
}
