package siftprometheus

import (
	"strconv"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/metrics"
)

// A Collector collects the metrics of one store. It is safe for concurrent use, and may outlive the
// store. See the package's comment.
type Collector struct {
	db *kv.DB

	open       *client.Desc
	figures    []described[figure]
	perLevel   []described[levelFigure]
	requests   []described[requestFigure]
	histograms []described[histogram]
}

var _ client.Collector = (*Collector)(nil)

// A described is something to collect, with its description.
type described[T any] struct {
	what T
	desc *client.Desc
}

// NewCollector returns a collector of the metrics of db, all of which have the labels: of any names but level,
// source, kind, outcome and le, which metrics have themselves; a registry refuses these. It takes several collectors
// if the values of their labels differ. The labels are copied.
func NewCollector(db *kv.DB, labels client.Labels) *Collector {
	c := &Collector{db: db}
	desc := func(name, help string, variable ...string) *client.Desc {
		return client.NewDesc("siftkv_"+name, help, variable, labels)
	}
	c.open = desc("open", "Whether the store is open: if not, figures of the moment are left out.")
	for _, f := range figures {
		c.figures = append(c.figures, described[figure]{f, desc(f.name, f.help)})
	}
	for _, f := range levelFigures {
		variable := []string{"level"}
		if f.source != "" {
			variable = append(variable, "source")
		}
		c.perLevel = append(c.perLevel, described[levelFigure]{f, desc(f.name, f.help, variable...)})
	}
	for _, f := range requestFigures {
		variable := []string{"kind"}
		if f.outcome != "" {
			variable = append(variable, "outcome")
		}
		c.requests = append(c.requests, described[requestFigure]{f, desc(f.name, f.help, variable...)})
	}
	for _, h := range histograms {
		c.histograms = append(c.histograms, described[histogram]{h, desc(h.name, h.help)})
	}
	return c
}

// Describe sends the descriptions of all that Collect may send.
func (c *Collector) Describe(to chan<- *client.Desc) {
	to <- c.open
	for _, f := range c.figures {
		to <- f.desc
	}
	for _, f := range c.perLevel {
		to <- f.desc
	}
	for _, f := range c.requests {
		to <- f.desc
	}
	for _, h := range c.histograms {
		to <- h.desc
	}
}

// Collect sends the metrics of the store as of one moment.
func (c *Collector) Collect(to chan<- client.Metric) {
	c.collect(c.db.Metrics(), to)
}

func (c *Collector) collect(m *metrics.Store, to chan<- client.Metric) {
	open := 1.0
	if m.Closed {
		open = 0
	}
	to <- client.MustNewConstMetric(c.open, client.GaugeValue, open)
	for _, f := range c.figures {
		if f.what.kind == client.CounterValue || !m.Closed {
			to <- client.MustNewConstMetric(f.desc, f.what.kind, f.what.value(m))
		}
	}
	for _, f := range c.perLevel {
		if f.what.kind != client.CounterValue && m.Closed {
			continue
		}
		for n := range m.Levels {
			values := []string{strconv.Itoa(n)}
			if f.what.source != "" {
				values = append(values, f.what.source)
			}
			to <- client.MustNewConstMetric(f.desc, f.what.kind, f.what.value(&m.Levels[n]), values...)
		}
	}
	c.collectRequests(m, to)
	for _, h := range c.histograms {
		if timed := h.what.value(&m.Latency); timed.OneIn > 0 {
			to <- constHistogram(h.desc, timed)
		}
	}
}
