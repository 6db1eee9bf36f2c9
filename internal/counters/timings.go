package counters

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/kv/metrics"
)

// The buckets of a metrics.Histogram: subBuckets of a power of two have the same width. Times of more than maxBits bits
// count as the longest.
const (
	subBucketBits = 4
	subBuckets    = 1 << subBucketBits
	maxBits       = 44
	numBuckets    = (maxBits - subBucketBits + 1) * subBuckets
)

// bucketOf returns the bucket of a time.
func bucketOf(t time.Duration) int {
	ns := min(uint64(max(t, 0)), 1<<maxBits-1)
	shift := max(bits.Len64(ns)-subBucketBits-1, 0)
	return shift<<subBucketBits + int(ns>>shift)
}

// bucketBounds returns the shortest time of a bucket, and that of the next.
func bucketBounds(i int) (lower, upper time.Duration) {
	shift := max(i>>subBucketBits-1, 0)
	lower = time.Duration(i-shift<<subBucketBits) << shift
	return lower, lower + 1<<shift
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

// histogramOf returns what several timings have together, one operation in oneIn.
func histogramOf(oneIn uint64, all ...*timings) metrics.Histogram {
	h := metrics.Histogram{OneIn: oneIn}
	for _, t := range all {
		h.Sum += time.Duration(t.sum.Load())
	}
	for i := range numBuckets {
		n := uint64(0)
		for _, t := range all {
			n += t.counts[i].Load()
		}
		if n > 0 {
			lower, upper := bucketBounds(i)
			h.Buckets = append(h.Buckets, metrics.Bucket{Lower: lower, Upper: upper, Count: n})
			h.Count += n
		}
	}
	return h
}
