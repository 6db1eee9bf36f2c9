package siftprometheus

import (
	client "github.com/prometheus/client_golang/prometheus"

	"github.com/siftkv/siftkv/kv/metrics"
	"github.com/siftkv/siftkv/objstore"
)

// A requestFigure is one of each kind of request to an object store, with the label kind, and outcome if that is not
// empty. All of them are counters.
type requestFigure struct {
	name, help string
	outcome    string
	value      func(c objstore.Count) int64
}

const callsHelp = "Calls to the object store, by what they came to: ok, failed, or unknown."

var requestFigures = []requestFigure{
	{"object_calls_total", callsHelp, "ok", func(c objstore.Count) int64 { return c.Calls - c.Failed }},
	{"object_calls_total", callsHelp, "failed", func(c objstore.Count) int64 { return c.Failed - c.Unknown }},
	{"object_calls_total", callsHelp, "unknown", func(c objstore.Count) int64 { return c.Unknown }},
	{"object_requests_total", "Requests that were sent to the object store, and are billed.", "",
		func(c objstore.Count) int64 { return c.Requests }},
	{"object_retries_total", "Requests to the object store that repeated one that failed.", "",
		func(c objstore.Count) int64 { return c.Retries }},
	{"object_hedges_total", "Requests to the object store that raced with a slow one.", "",
		func(c objstore.Count) int64 { return c.Hedges }},
	{"object_throttled_total", "Requests that the object store refused for coming too fast.", "",
		func(c objstore.Count) int64 { return c.Throttled }},
	{"object_bytes_total", "Bytes of objects: received by get, sent by put and put-if-absent.", "",
		func(c objstore.Count) int64 { return c.Bytes }},
}

// collectRequests sends the figures of requests; none of a store that has sent none, as it is in a directory.
func (c *Collector) collectRequests(m *metrics.Store, to chan<- client.Metric) {
	counts := m.Objects.Requests
	if counts.Total().Calls == 0 {
		return
	}
	for _, f := range c.requests {
		for kind, count := range counts {
			values := []string{objstore.Kind(kind).String()}
			if f.what.outcome != "" {
				values = append(values, f.what.outcome)
			}
			to <- client.MustNewConstMetric(f.desc, counter, float64(f.what.value(count)), values...)
		}
	}
}
