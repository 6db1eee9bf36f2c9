package stats

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/siftkv/siftkv/redisfilter"
)

// Sets gives what sets in Redis tell of themselves to Prometheus, by the names of the service's filters. A
// scrape asks no server. All names begin with guard_set_.
func Sets(metrics map[string]func() redisfilter.Metrics) prometheus.Collector { return sets(metrics) }

type sets map[string]func() redisfilter.Metrics

// A setMetric is one number of a set.
type setMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*redisfilter.Metrics) float64
}

var setMetrics = []setMetric{
	is("loaded", "1 if the set can say no, unless a server is away.",
		func(m *redisfilter.Metrics) bool { return m.Loaded }),
	is("loading", "1 while a process loads the set.",
		func(m *redisfilter.Metrics) bool { return m.Loading }),
	is("full", "1 if the set refused a key of this process and was not loaded since.",
		func(m *redisfilter.Metrics) bool { return m.Full }),
	{describe("set_capacity", "Keys that the set in use was made for.", "filter"), prometheus.GaugeValue,
		func(m *redisfilter.Metrics) float64 { return float64(m.Capacity) }},
	counted("lookups", "Keys that were asked for.", func(m *redisfilter.Metrics) uint64 { return m.Lookups }),
	counted("absent", "Keys that were not there.", func(m *redisfilter.Metrics) uint64 { return m.Absent }),
	counted("unsure", "Keys of which the set could not tell.", func(m *redisfilter.Metrics) uint64 { return m.Unsure }),
	counted("adds", "Keys that were to be added.", func(m *redisfilter.Metrics) uint64 { return m.Adds }),
	counted("failed_adds", "Keys whose add failed.", func(m *redisfilter.Metrics) uint64 { return m.Failed }),
	counted("refused_adds", "Keys that had no room.", func(m *redisfilter.Metrics) uint64 { return m.Refused }),
	counted("losses", "Times that something was lost.", func(m *redisfilter.Metrics) uint64 { return m.Losses }),
	counted("loads", "Loads of this process.", func(m *redisfilter.Metrics) uint64 { return m.Loads }),
	counted("failed_loads", "Loads of this process that failed.",
		func(m *redisfilter.Metrics) uint64 { return m.FailedLoads }),
}

func is(name, help string, value func(*redisfilter.Metrics) bool) setMetric {
	return setMetric{describe("set_"+name, help, "filter"), prometheus.GaugeValue,
		func(m *redisfilter.Metrics) float64 {
			if value(m) {
				return 1
			}
			return 0
		}}
}

func counted(name, help string, value func(*redisfilter.Metrics) uint64) setMetric {
	return setMetric{describe("set_"+name+"_total", help, "filter"), prometheus.CounterValue,
		func(m *redisfilter.Metrics) float64 { return float64(value(m)) }}
}

// Describe implements prometheus.Collector.
func (sets) Describe(out chan<- *prometheus.Desc) {
	for _, m := range setMetrics {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (s sets) Collect(out chan<- prometheus.Metric) {
	for filter, metrics := range s {
		now := metrics()
		for _, m := range setMetrics {
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&now), filter)
		}
	}
}
