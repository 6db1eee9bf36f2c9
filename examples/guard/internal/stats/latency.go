package stats

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is how long requests took, in microseconds. Count, Sum and Bars never go
// down.
type Latency struct {
	Count uint64 `json:"count"`
	Sum   int64  `json:"sum"`
	// Bars are numbers of requests by time, rounded up by 6 % at most. Times that
	// no request took are left out.
	Bars map[int64]uint64 `json:"bars"`
	// Quantiles since the start.
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// Since returns the latency of the requests that were answered after before was
// taken. Max is that of its highest bar.
func (l Latency) Since(before Latency) Latency {
	d := Latency{Sum: l.Sum - before.Sum, Bars: make(map[int64]uint64)}
	for us, n := range l.Bars {
		if n -= before.Bars[us]; n > 0 {
			d.Bars[us] = n
			d.Count += n
			d.Max = max(d.Max, us)
		}
	}
	d.P50, d.P99 = d.Quantile(0.5), d.Quantile(0.99)
	return d
}

// Quantile returns the time within which the share q (0 to 1) of
// requests was answered, 0 if there was none.
func (l Latency) Quantile(q float64) int64 {
	rest := q * float64(l.Count)
	var us int64
	for _, us = range slices.Sorted(maps.Keys(l.Bars)) {
		if rest -= float64(l.Bars[us]); rest <= 0 {
			break
		}
	}
	return us
}

// A Histogram counts times. It may be used from many goroutines, unlike the HDR
// histogram in it. See NewHistogram.
type Histogram struct {
	mu  sync.Mutex
	hdr *hdrhistogram.Histogram
	sum time.Duration
}

// longest is the highest time that is told apart, in microseconds.
const longest = int64(time.Minute / time.Microsecond)

// NewHistogram returns a histogram of no times.
func NewHistogram() *Histogram { return &Histogram{hdr: hdrhistogram.New(1, longest, 1)} }

// Record counts one request that took d; one of more than a minute counts as a minute.
func (h *Histogram) Record(d time.Duration) {
	us := min(max(d.Microseconds(), 1), longest)
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.hdr.RecordValue(us) // us is within the bounds: no error is possible
	h.sum += d
}

// Snapshot returns what was recorded.
func (h *Histogram) Snapshot() Latency {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := Latency{
		Count: uint64(h.hdr.TotalCount()), Sum: h.sum.Microseconds(), Bars: make(map[int64]uint64),
		P50: h.hdr.ValueAtQuantile(50), P99: h.hdr.ValueAtQuantile(99), Max: h.hdr.Max(),
	}
	for _, bar := range h.hdr.Distribution() {
		if bar.Count > 0 {
			l.Bars[bar.To] = uint64(bar.Count)
		}
	}
	return l
}
