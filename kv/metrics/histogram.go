package metrics

import (
	"math"
	"time"
)

// A Histogram says how long operations took. Its buckets are log-linear: each power of two of nanoseconds has 16 of
// the same width, so that Quantile is off by 1/32 at most (3.2 %). Times below 32 ns are exact, and those above 4
// hours count as about that. The zero Histogram is empty.
type Histogram struct {
	Count uint64        // operations that were timed
	Sum   time.Duration // of their times, exact

	// OneIn is how many operations there were for each one that was timed: exactly, except for fewer than 16 * OneIn
	// whose turn is still to come. It is 0 if Options.LatencyHistograms is not set.
	OneIn uint64

	// Buckets are those that are not empty, the shortest times first. Every power of two nanoseconds is a bound of
	// buckets, and no bucket has times on both sides of one. They are not part of JSON.
	Buckets []Bucket `json:"-"`
}

// A Bucket counts operations that took at least Lower and less than Upper.
type Bucket struct {
	Lower, Upper time.Duration
	Count        uint64
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
	for _, b := range h.Buckets {
		if rank <= b.Count {
			return b.Lower + (b.Upper-b.Lower)/2
		}
		rank -= b.Count
	}
	return 0
}

// Sub returns what was timed since prev, which is an earlier histogram of the same operations of the same store.
func (h Histogram) Sub(prev Histogram) Histogram {
	h.Count -= prev.Count
	h.Sum -= prev.Sum
	var buckets []Bucket
	for _, b := range h.Buckets {
		for len(prev.Buckets) > 0 && prev.Buckets[0].Lower < b.Lower {
			prev.Buckets = prev.Buckets[1:]
		}
		if len(prev.Buckets) > 0 && prev.Buckets[0].Lower == b.Lower {
			b.Count -= prev.Buckets[0].Count
		}
		if b.Count > 0 {
			buckets = append(buckets, b)
		}
	}
	h.Buckets = buckets
	return h
}
