// Package siftprometheus shows the metrics of a store to Prometheus.
//
//	db, err := kv.Open(dir, &kv.Options{LatencyHistograms: true})
//	prometheus.MustRegister(siftprometheus.NewCollector(db, prometheus.Labels{"store": "users"}))
//
// A [Collector] asks the store for [metrics.Store] once in each scrape, and gives all figures of it that are of
// the same moment. Several stores of a program are told apart by a label of the caller's, whose name must be
// the same for all of them. Names begin with siftkv_; what counts up from the store's opening ends in _total,
// sizes in _bytes and times in _seconds.
//
// # A store that is closed
//
// A scrape of a store that is being closed, or was, is no error: siftkv_open is then 0, counters and
// histograms keep their last values, and what is of the moment (files, memory, debt) is left out, so that
// graphs show a gap and not zeros. Unregister the collector to have the rest go too. A store that is opened
// again needs a collector of its own: its counters start at 0.
//
// # Histograms
//
// Those of times are there if the store has Options.LatencyHistograms. They are classic ones, whose bounds
// are powers of two in nanoseconds, on which the store's own buckets meet: the counts are exact. Of lookups
// and commits one in sixteen is timed, and their _count says how many were timed; siftkv_gets_total has all
// lookups.
package siftprometheus
