package kv

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// A Histogram says how long operations took. Its buckets are log-linear: each power of two of nanoseconds has 16 of
// the same width, so that Quantile is off by 1/32 at most (3.2 %). Times below 32 ns are exact, and those above 4
// hours count as about that. The zero Histogram is empty. Those of Metrics are copies, which do not change.
type Histogram struct {
	Count uint64        // operations that were timed
	Sum   time.Duration // of their times, exact

	// OneIn is how many operations there were for each one that was timed: exactly, except for fewer than 16 * OneIn
	// whose turn is still to come. It is 0 if Options.LatencyHistograms is not set.
	OneIn uint64

	counts []uint64 // by bucket, without the empty ones at the end
}

// A HistogramBucket counts operations that took at least Lower and less than Upper.
type HistogramBucket struct {
	Lower, Upper time.Duration
	Count        uint64
}

// subBuckets is how many buckets a power of two has; mostBits, how many bits a time has that is
// told from longer ones.
const (
	subBucketBits = 4
	subBuckets    = 1 << subBucketBits
	mostBits      = 44
	numBuckets    = (mostBits - subBucketBits + 1) * subBuckets
)

// bucketOf returns the bucket of a time.
func bucketOf(t time.Duration) int {
	ns := min(uint64(max(t, 0)), 1<<mostBits-1)
	shift := max(bits.Len64(ns)-subBucketBits-1, 0)
	return shift<<subBucketBits + int(ns>>shift)
}

// bucketBounds returns the least time of a bucket, and that of the next.
func bucketBounds(i int) (lower, upper time.Duration) {
	shift := max(i>>subBucketBits-1, 0)
	lower = time.Duration(i-shift<<subBucketBits) << shift
	return lower, lower + 1<<shift
}

// Mean returns the average; 0 if nothing was timed.
func (h Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return h.Sum / time.Duration(h.Count)
}

// Quantile returns the time within which a share q of the operations ended, from 0, the
// shortest, to 1, the longest: the middle of its bucket. It is 0 if nothing was timed.
func (h Histogram) Quantile(q float64) time.Duration {
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(h.Count)))
	for i, n := range h.counts {
		if rank <= n && n > 0 {
			lower, upper := bucketBounds(i)
			return lower + (upper-lower)/2
		}
		rank -= min(n, rank)
	}
	return 0
}

// Buckets returns the buckets that are not empty, the shortest times first. Every power of two
// nanoseconds is a bound of buckets, and no bucket has times on both sides of one.
func (h Histogram) Buckets() []HistogramBucket {
	var buckets []HistogramBucket
	for i, n := range h.counts {
		if n > 0 {
			lower, upper := bucketBounds(i)
			buckets = append(buckets, HistogramBucket{lower, upper, n})
		}
	}
	return buckets
}

// Sub returns what was timed since prev, which is an earlier histogram of the same operations
// of the same store.
func (h Histogram) Sub(prev Histogram) Histogram {
	h.Count -= prev.Count
	h.Sum -= prev.Sum
	h.counts = slices.Clone(h.counts)
	for i := range min(len(h.counts), len(prev.counts)) {
		h.counts[i] -= prev.counts[i]
	}
	return h
}

// A timings is a histogram that goroutines add to, without a lock.
type timings struct {
	sum    atomic.Int64
	counts [numBuckets]counter
}

func (t *timings) add(took time.Duration) {
	t.sum.Add(int64(took))
	t.counts[bucketOf(took)].Add(1)
}

// addTo adds what there is to a histogram that has all buckets.
func (t *timings) addTo(h *Histogram) {
	h.Sum += time.Duration(t.sum.Load())
	for i := range t.counts {
		n := t.counts[i].Load()
		h.counts[i] += n
		h.Count += n
	}
}
