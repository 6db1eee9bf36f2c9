package guard

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siftkv/siftkv/redisfilter"
)

// Counters count what each layer of the service was asked. They never go down, so the difference of two readings is a
// rate; gauges are marked. They are for any number of goroutines.
type Counters struct {
	Users    FilterCounters // the set of user identifiers
	Names    FilterCounters // the set of names
	Banned   FilterCounters // the black list
	Cache    CacheCounters
	Database DatabaseCounters
	Requests atomic.Uint64

	status  *prometheus.CounterVec
	latency prometheus.Histogram
}

// FilterCounters count the keys that one filter was asked for. Each key is a No or a Maybe. An answer with an error is
// a Maybe and an Error.
type FilterCounters struct {
	No, Maybe, Errors atomic.Uint64
	Full              atomic.Uint64 // keys that were refused for want of room
}

// answered counts one key, what the filter said of it, and whether it could tell.
func (f *FilterCounters) answered(maybe bool, err error) {
	if err != nil {
		f.Errors.Add(1)
	}
	if maybe {
		f.Maybe.Add(1)
	} else {
		f.No.Add(1)
	}
}

// CacheCounters count reads of the cache. Nulls are entries that say "no such row". A read that failed is a Miss and
// an Error.
type CacheCounters struct{ Hits, Nulls, Misses, Errors atomic.Uint64 }

// answered counts one read: whether the cache knew the key, and whether it has a row.
func (c *CacheCounters) answered(found, known bool, err error) {
	switch {
	case found:
		c.Hits.Add(1)
	case known:
		c.Nulls.Add(1)
	default:
		c.Misses.Add(1)
	}
	if err != nil {
		c.Errors.Add(1)
	}
}

// DatabaseCounters count statements.
type DatabaseCounters struct {
	Queries, Writes, Errors atomic.Uint64
	Empty                   atomic.Uint64 // queries that found no row, such as those of filters' false positives
	Shed                    atomic.Uint64 // statements that the gate refused
	Running, Waiting        atomic.Int64  // gauges
}

// NewCounters returns counters at zero.
func NewCounters() *Counters {
	return &Counters{
		status: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guard_requests_total", Help: "Requests by the status of their answer.",
		}, []string{"status"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "guard_request_seconds", Help: "How long requests took.",
			Buckets: []float64{.0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5},
		}),
	}
}

// request counts one request that was answered with status after d.
func (c *Counters) request(status string, d time.Duration) {
	c.Requests.Add(1)
	c.status.WithLabelValues(status).Inc()
	c.latency.Observe(d.Seconds())
}

// Layers are how much the layers of the service were asked, in all.
type Layers struct {
	Requests  uint64 `json:"requests"`
	Filter    uint64 `json:"filter"`     // keys that filters were asked for
	FilterNo  uint64 `json:"filter_no"`  // of them: "no", and no other layer was asked
	Cache     uint64 `json:"cache"`      // keys that the cache was asked for
	CacheHits uint64 `json:"cache_hits"` // of them: the cache knew the answer
	Queries   uint64 `json:"queries"`    // of the database
	Empty     uint64 `json:"empty"`      // of them: there was no such row
	Writes    uint64 `json:"writes"`
	Shed      uint64 `json:"shed"` // statements that were refused, as the queue was full
}

// Layers returns the sums. Requests under way may be counted in one layer and not yet in the next.
func (c *Counters) Layers() Layers {
	l := Layers{
		Requests: c.Requests.Load(), CacheHits: c.Cache.Hits.Load() + c.Cache.Nulls.Load(),
		Queries: c.Database.Queries.Load(), Empty: c.Database.Empty.Load(),
		Writes: c.Database.Writes.Load(), Shed: c.Database.Shed.Load(),
	}
	l.Cache = l.CacheHits + c.Cache.Misses.Load()
	for _, f := range []*FilterCounters{&c.Users, &c.Names, &c.Banned} {
		l.FilterNo += f.No.Load()
		l.Filter += f.No.Load() + f.Maybe.Load()
	}
	return l
}

type labels = prometheus.Labels

// Register makes the counters, and the metrics of the sets in Redis by the names of their filters, known to Prometheus
// as guard_*. A scrape asks no server.
func (c *Counters) Register(r prometheus.Registerer, sets map[string]func() redisfilter.Metrics) {
	counter := func(name, help string, n *atomic.Uint64, of labels) {
		o := prometheus.CounterOpts{Name: "guard_" + name, Help: help, ConstLabels: of}
		r.MustRegister(prometheus.NewCounterFunc(o, func() float64 { return float64(n.Load()) }))
	}
	gauge := func(name, help string, n *atomic.Int64) {
		o := prometheus.GaugeOpts{Name: "guard_" + name, Help: help}
		r.MustRegister(prometheus.NewGaugeFunc(o, func() float64 { return float64(n.Load()) }))
	}
	r.MustRegister(c.status, c.latency)
	for name, f := range map[string]*FilterCounters{"users": &c.Users, "names": &c.Names, "banned": &c.Banned} {
		const answers = "Keys that filters were asked for, by answer."
		counter("filter_answers_total", answers, &f.No, labels{"filter": name, "answer": "no"})
		counter("filter_answers_total", answers, &f.Maybe, labels{"filter": name, "answer": "maybe"})
		counter("filter_errors_total", "Keys of which a filter could not tell.", &f.Errors, labels{"filter": name})
		counter("filter_full_total", "Keys that a filter refused for want of room.", &f.Full, labels{"filter": name})
	}
	const asked, sent = "Keys that the cache was asked for, by answer.", "Statements sent to the database."
	counter("cache_answers_total", asked, &c.Cache.Hits, labels{"answer": "hit"})
	counter("cache_answers_total", asked, &c.Cache.Nulls, labels{"answer": "null"})
	counter("cache_answers_total", asked, &c.Cache.Misses, labels{"answer": "miss"})
	counter("cache_errors_total", "Reads and writes that the cache failed.", &c.Cache.Errors, nil)
	counter("database_statements_total", sent, &c.Database.Queries, labels{"kind": "query"})
	counter("database_statements_total", sent, &c.Database.Writes, labels{"kind": "write"})
	counter("database_empty_total", "Reads that found no row.", &c.Database.Empty, nil)
	counter("database_errors_total", "Statements that the database failed.", &c.Database.Errors, nil)
	counter("database_shed_total", "Statements that were refused: the queue was full.", &c.Database.Shed, nil)
	gauge("database_running", "Statements at work.", &c.Database.Running)
	gauge("database_waiting", "Statements in the queue.", &c.Database.Waiting)
	for name, metrics := range sets {
		registerSet(r, labels{"filter": name}, metrics)
	}
}

// registerSet makes the metrics of one set in Redis known as guard_set_*.
func registerSet(r prometheus.Registerer, of labels, metrics func() redisfilter.Metrics) {
	gauge := func(name, help string, value func(redisfilter.Metrics) int) {
		o := prometheus.GaugeOpts{Name: "guard_set_" + name, Help: help, ConstLabels: of}
		r.MustRegister(prometheus.NewGaugeFunc(o, func() float64 { return float64(value(metrics())) }))
	}
	one := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	counter := func(name, help string, value func(redisfilter.Metrics) uint64) {
		o := prometheus.CounterOpts{Name: "guard_set_" + name + "_total", Help: help, ConstLabels: of}
		r.MustRegister(prometheus.NewCounterFunc(o, func() float64 { return float64(value(metrics())) }))
	}
	type m = redisfilter.Metrics
	gauge("loaded", "1 if the set can say no, unless a server is away.", func(m m) int { return one(m.Loaded) })
	gauge("loading", "1 while a process loads the set.", func(m m) int { return one(m.Loading) })
	gauge("full", "1 if the set refused a key and was not loaded since.", func(m m) int { return one(m.Full) })
	gauge("capacity", "Keys that the set in use was made for.", func(m m) int { return m.Capacity })
	counter("losses", "Times that something was lost.", func(m m) uint64 { return m.Losses })
	counter("failed_loads", "Loads of this process that failed.", func(m m) uint64 { return m.FailedLoads })
}
