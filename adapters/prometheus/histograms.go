package siftprometheus

import (
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/siftkv/siftkv/kv/metrics"
)

// A histogram is one of how long operations took.
type histogram struct {
	name, help string
	value      func(l *metrics.Latency) metrics.Histogram
}

var histograms = []histogram{
	{"get_duration_seconds", "Time of single lookups, of which one in sixteen is timed.",
		func(l *metrics.Latency) metrics.Histogram { return l.Get }},
	{"commit_duration_seconds", "Time of commits, of which one in sixteen is timed.",
		func(l *metrics.Latency) metrics.Histogram { return l.Commit }},
	{"wal_sync_duration_seconds", "Time of syncs of the log.",
		func(l *metrics.Latency) metrics.Histogram { return l.Sync }},
	{"flush_duration_seconds", "Time of flushes.",
		func(l *metrics.Latency) metrics.Histogram { return l.Flush }},
	{"write_wait_duration_seconds", "Time that writes waited for flushes and compactions, or were delayed.",
		func(l *metrics.Latency) metrics.Histogram { return l.Stall }},
}

// The bounds of buckets are the powers of two from 128 ns to 17 s, on which the buckets of a
// metrics.Histogram meet.
const (
	firstBound = 7
	lastBound  = 34
)

// constHistogram returns a histogram as of now.
func constHistogram(desc *client.Desc, h metrics.Histogram) client.Metric {
	bounds := make(map[float64]uint64, lastBound-firstBound+1)
	from, all, within := 0, h.Buckets, uint64(0)
	for bit := firstBound; bit <= lastBound; bit++ {
		bound := time.Duration(1) << bit
		for ; from < len(all) && all[from].Upper <= bound; from++ {
			within += all[from].Count
		}
		bounds[bound.Seconds()] = within
	}
	return client.MustNewConstHistogram(desc, h.Count, h.Sum.Seconds(), bounds)
}
