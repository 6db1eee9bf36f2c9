package stats

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector gives the counters to Prometheus. All names begin with guard_.
func (c *Counters) Collector() prometheus.Collector { return collector{c} }

type collector struct{ counters *Counters }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("guard_"+name, help, labels, nil)
}

var (
	requestsDesc = describe("requests_total", "Requests by the status of their answer.", "status")
	latencyDesc  = describe("request_seconds", "How long requests took.")
	filterDesc   = describe("filter_answers_total", "Keys that filters were asked for, by answer.", "filter", "answer")
	failedDesc   = describe("filter_errors_total", "Keys of which a filter could not tell.", "filter")
	fullDesc     = describe("filter_full_total", "Keys that a filter refused for want of room.", "filter")
	cacheDesc    = describe("cache_answers_total", "Keys that the cache was asked for, by answer.", "answer")
	cacheErrDesc = describe("cache_errors_total", "Reads and writes that the cache failed.")
	databaseDesc = describe("database_statements_total", "Statements sent to the database.", "kind")
	emptyDesc    = describe("database_empty_total", "Reads that found no row.")
	databaseErr  = describe("database_errors_total", "Statements that the database failed.")
	shedDesc     = describe("database_shed_total", "Statements refused before the database: its queue was full.")
	runningDesc  = describe("database_running", "Statements at work.")
	waitingDesc  = describe("database_waiting", "Statements in the queue.")
	sharedDesc   = describe("shared_reads_total", "Reads that waited for another's query of the same key.")
)

// bounds are of the buckets of guard_request_seconds, in microseconds.
var bounds = []int64{100, 200, 500, 1e3, 2e3, 5e3, 10e3, 20e3, 50e3, 100e3, 200e3, 500e3, 1e6, 2e6, 5e6}

// Describe implements prometheus.Collector.
func (collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		requestsDesc, latencyDesc, filterDesc, failedDesc, fullDesc, cacheDesc, cacheErrDesc,
		databaseDesc, emptyDesc, databaseErr, shedDesc, runningDesc, waitingDesc, sharedDesc,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s := c.counters.Snapshot()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		send(d, prometheus.CounterValue, float64(n), labels...)
	}
	for status, n := range s.Status {
		count(requestsDesc, n, strconv.Itoa(status))
	}
	for name, f := range map[string]FilterSnapshot{
		"users": s.Users, "names": s.Names, "banned": s.Banned, "feed": s.Feed,
	} {
		count(filterDesc, f.No, name, "no")
		count(filterDesc, f.Maybe, name, "maybe")
		count(failedDesc, f.Errors, name)
		count(fullDesc, f.Full, name)
	}
	count(cacheDesc, s.Cache.Hits, "hit")
	count(cacheDesc, s.Cache.NullHits, "null")
	count(cacheDesc, s.Cache.Misses, "miss")
	count(cacheErrDesc, s.Cache.Errors)
	count(databaseDesc, s.Database.Queries, "query")
	count(databaseDesc, s.Database.Inserts, "write")
	count(emptyDesc, s.Database.Empty)
	count(databaseErr, s.Database.Errors)
	count(shedDesc, s.Database.Shed)
	count(sharedDesc, s.Shared)
	send(runningDesc, prometheus.GaugeValue, float64(s.Database.Running))
	send(waitingDesc, prometheus.GaugeValue, float64(s.Database.Waiting))
	out <- prometheus.MustNewConstHistogram(
		latencyDesc, s.Latency.Count, float64(s.Latency.Sum)/1e6, s.Latency.buckets())
}

// buckets returns how many requests took at most as long as each bound, in seconds.
func (l Latency) buckets() map[float64]uint64 {
	buckets := make(map[float64]uint64, len(bounds))
	for _, bound := range bounds {
		buckets[float64(bound)/1e6] = 0
		for us, n := range l.Bars {
			if us <= bound {
				buckets[float64(bound)/1e6] += n
			}
		}
	}
	return buckets
}
