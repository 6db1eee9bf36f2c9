package siftprometheus

import (
	"slices"
	"strconv"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/metrics"
	"github.com/siftkv/siftkv/objstore"
)

// A Collector collects the metrics of one store. It is safe for concurrent use, and may outlive the
// store. See the package's comment.
type Collector struct {
	db *kv.DB

	open       *client.Desc
	figures    map[string]*client.Desc // by name
	histograms []*client.Desc
}

var _ client.Collector = (*Collector)(nil)

// NewCollector returns a collector of the metrics of db, all of which have the labels: of any names but level,
// source, kind, outcome and le, which metrics have themselves; a registry refuses these. It takes several collectors
// if the values of their labels differ. The labels are copied.
func NewCollector(db *kv.DB, labels client.Labels) *Collector {
	c := &Collector{db: db, figures: map[string]*client.Desc{}}
	desc := func(name, help string, variable ...string) *client.Desc {
		return client.NewDesc("siftkv_"+name, help, variable, labels)
	}
	describe := func(figures []figure, variable ...string) {
		for _, f := range figures {
			c.figures[f.name] = desc(f.name, f.help, slices.Concat(variable, f.label)...)
		}
	}
	c.open = desc("open", "Whether the store is open: if not, figures of the moment are left out.")
	describe(figuresOf(&metrics.Store{}))
	describe(figuresOfLevel(&metrics.Level{}), "level")
	describe(figuresOfRequests(objstore.Count{}), "kind")
	for _, h := range histograms {
		c.histograms = append(c.histograms, desc(h.name, h.help))
	}
	return c
}

// Describe sends the descriptions of all that Collect may send.
func (c *Collector) Describe(to chan<- *client.Desc) {
	to <- c.open
	for _, desc := range c.figures {
		to <- desc
	}
	for _, desc := range c.histograms {
		to <- desc
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
	send := func(figures []figure, labels ...string) {
		for _, f := range figures {
			if f.kind == client.CounterValue || !m.Closed {
				labels := slices.Concat(labels, f.labelValue)
				to <- client.MustNewConstMetric(c.figures[f.name], f.kind, f.value, labels...)
			}
		}
	}
	send(figuresOf(m))
	for n := range m.Levels {
		send(figuresOfLevel(&m.Levels[n]), strconv.Itoa(n))
	}
	if m.Objects.Requests.Total().Calls > 0 { // none: the store is in a directory
		for kind, count := range m.Objects.Requests {
			send(figuresOfRequests(count), objstore.Kind(kind).String())
		}
	}
	for i, h := range histograms {
		if timed := h.value(&m.Latency); timed.OneIn > 0 {
			to <- constHistogram(c.histograms[i], timed)
		}
	}
}
