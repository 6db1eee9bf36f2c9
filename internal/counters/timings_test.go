package counters

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv/metrics"
)

// The buckets follow each other without a gap, none is wider than a sixteenth of its times, and none lies on both
// sides of a power of two.
func TestBucketsOfAHistogram(t *testing.T) {
	next := time.Duration(0)
	for i := range numBuckets {
		lower, upper := bucketBounds(i)
		require.Equal(t, next, lower)
		require.LessOrEqual(t, upper-lower, max(lower/subBuckets, 1))
		require.Equal(t, i, bucketOf(lower))
		require.Equal(t, i, bucketOf(upper-1))
		next = upper
	}
	require.Equal(t, time.Duration(1)<<maxBits, next)
	for bit := range maxBits {
		lower, _ := bucketBounds(bucketOf(1 << bit))
		require.Equal(t, time.Duration(1)<<bit, lower)
	}
	require.Zero(t, bucketOf(-time.Second), "a clock that goes back")
	require.Equal(t, numBuckets-1, bucketOf(math.MaxInt64))
}

func timesOf(all ...time.Duration) metrics.Histogram {
	var t timings
	for _, d := range all {
		t.add(d)
	}
	return histogramOf(1, &t)
}

// Quantiles are as exact as is said, whatever the distribution.
func TestQuantilesOfAHistogram(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		all, sum := make([]time.Duration, 1+rng.IntN(300)), time.Duration(0)
		for i := range all {
			all[i] = time.Duration(math.Exp(rng.Float64() * math.Log(1e12)))
			sum += all[i]
		}
		h := timesOf(all...)
		slices.Sort(all)
		require.EqualValues(t, len(all), h.Count)
		require.Equal(t, sum, h.Sum)
		require.Equal(t, sum/time.Duration(len(all)), h.Mean())
		for _, q := range []float64{0, 0.1, 0.5, 0.99, 1} {
			exact := all[max(int(math.Ceil(q*float64(len(all))))-1, 0)]
			require.InEpsilon(t, exact, h.Quantile(q), 1.0/32, "%v of %d", q, len(all))
		}
		require.Equal(t, h.Quantile(0), h.Quantile(-1))
		require.Equal(t, h.Quantile(1), h.Quantile(2))
		count, last := uint64(0), time.Duration(-1)
		for _, b := range h.Buckets {
			require.Greater(t, b.Lower, last)
			require.Positive(t, b.Count)
			count, last = count+b.Count, b.Lower
		}
		require.Equal(t, h.Count, count)
	}
	require.Zero(t, metrics.Histogram{}.Quantile(0.5))
	require.Zero(t, metrics.Histogram{}.Mean())
	require.Empty(t, metrics.Histogram{}.Buckets)
}

// What was timed since another histogram is timed by itself; both stay as they were.
func TestDifferenceOfHistograms(t *testing.T) {
	before, after := timesOf(5, 100, 2000), timesOf(5, 100, 100, 2000, 70_000)
	d := after.Sub(before)
	require.Equal(t, timesOf(100, 70_000).Buckets, d.Buckets)
	require.EqualValues(t, 2, d.Count)
	require.Equal(t, 70_100*time.Nanosecond, d.Sum)
	require.Equal(t, timesOf(5, 100, 100, 2000, 70_000), after)
	require.Equal(t, after, after.Sub(metrics.Histogram{}))
	require.Zero(t, metrics.Histogram{}.Sub(metrics.Histogram{}))
}
