// Package meter turns counters that only grow into what happens at present: how
// much of each a second, how long visitors wait, and what the database has to do
// for keys that do not exist.
package meter

import (
	"sync"
	"time"

	"github.com/siftkv/siftkv/examples/guard/internal/load"
	"github.com/siftkv/siftkv/examples/guard/internal/stats"
)

// Figures are numbers of events, in total or in a second.
type Figures struct {
	Requests float64 `json:"requests"` // answered by the service, whoever sent them
	Users    float64 `json:"users"`    // of the load: visitors who mean well
	Absent   float64 `json:"absent"`   // of the load: keys that do not exist
	Failed   float64 `json:"failed"`   // of the load
	Wrong    float64 `json:"wrong"`    // of the load

	Filter    float64 `json:"filter"`     // keys that filters were asked for
	FilterNo  float64 `json:"filter_no"`  // of them: "no", and nobody else was asked
	Cache     float64 `json:"cache"`      // keys that the cache was asked for
	CacheHits float64 `json:"cache_hits"` // of them: the cache knew the answer
	Queries   float64 `json:"queries"`    // of the database
	Empty     float64 `json:"empty"`      // of them: there was no such row
	Inserts   float64 `json:"inserts"`
	Shed      float64 `json:"shed"` // queries that were refused, as too many waited
}

// A Sample is the state at a time, and what happened since the sample before.
type Sample struct {
	Number    uint64    `json:"number"` // the first is 1
	Time      time.Time `json:"time"`
	Seconds   float64   `json:"seconds"` // since the sample before
	Total     Figures   `json:"total"`   // since the load began; without one, since the service did
	PerSecond Figures   `json:"per_second"`
	// How long the load's visitors who mean well have waited since the sample before, in
	// microseconds; without a load, all requests. 0: there were none.
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	// Queries of the database that found no row, per 10,000 keys that do not exist, since the
	// load began. Null if the load is no attack: other visitors ask for rows that are not there
	// too, such as for those of names that are free.
	PerTenThousand *float64 `json:"per_ten_thousand"`
}

// A Meter takes samples. It may be used from many goroutines; those that take samples share
// one row of them.
type Meter struct {
	counters func() stats.Snapshot

	mu     sync.Mutex
	load   *load.Load
	began  stats.Snapshot // when the load began; zero without one
	stats  stats.Snapshot // at the last sample
	taken  time.Time      // when the last sample began to be taken
	report load.Report
	number uint64
}

// New returns a meter of a service's counters.
func New(counters func() stats.Snapshot) *Meter {
	return &Meter{taken: time.Now(), counters: counters, stats: counters()}
}

// Play makes a load's figures part of the samples that follow. Call it just before the
// load runs.
func (m *Meter) Play(l *load.Load) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load, m.report, m.began = l, load.Report{}, m.counters()
}

// Report returns how the load went by the last sample; a Report of no scenario if none
// was played.
func (m *Meter) Report() load.Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.report
}

// Take takes a sample. On a busy machine it may be held up between two counters, so that what it counts is of
// any moment until it ends: a sample reaches from the beginning of the one before to its own end, and no
// figure a second is higher than it was.
func (m *Meter) Take() Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	begun := time.Now()
	var report load.Report
	if m.load != nil {
		report = m.load.Report()
	}
	now := m.counters()
	m.number++
	s := Sample{Number: m.number, Time: now.Time, Seconds: time.Since(m.taken).Seconds()}
	before := figures(m.stats, m.report)
	after := figures(now, report)
	since := after.minus(before)
	s.Total = after.minus(figures(m.began, load.Report{}))
	s.PerSecond = since.Over(s.Seconds)
	latency := now.Latency.Since(m.stats.Latency)
	if m.load != nil {
		latency = report.Users.Latency.Since(m.report.Users.Latency)
	}
	s.P50, s.P99 = latency.P50, latency.P99
	if report.Scenario == load.Attack && s.Total.Absent > 0 {
		ratio := s.Total.Empty / s.Total.Absent * 10_000
		s.PerTenThousand = &ratio
	}
	m.stats, m.report, m.taken = now, report, begun
	return s
}

// figures are the totals.
func figures(s stats.Snapshot, r load.Report) Figures {
	filters := s.Users.Add(s.Names).Add(s.Banned).Add(s.Feed)
	return Figures{
		Requests: float64(s.Requests), Users: float64(r.Users.Requests),
		Absent: float64(r.Kinds[load.Absent].Requests),
		Failed: float64(r.Everyone.Failed), Wrong: float64(r.Everyone.Wrong),
		Filter: float64(filters.Asked), FilterNo: float64(filters.No),
		Cache: float64(s.Cache.Asked), CacheHits: float64(s.Cache.Hits + s.Cache.NullHits),
		Queries: float64(s.Database.Queries), Empty: float64(s.Database.Empty),
		Inserts: float64(s.Database.Inserts), Shed: float64(s.Database.Shed),
	}
}

// fields are all figures.
func (f *Figures) fields() []*float64 {
	return []*float64{&f.Requests, &f.Users, &f.Absent, &f.Failed, &f.Wrong, &f.Filter, &f.FilterNo,
		&f.Cache, &f.CacheHits, &f.Queries, &f.Empty, &f.Inserts, &f.Shed}
}

// minus returns the differences.
func (f Figures) minus(before Figures) Figures {
	for i, x := range before.fields() {
		*f.fields()[i] -= *x
	}
	return f
}

// Over returns totals of some seconds as figures a second.
func (f Figures) Over(seconds float64) Figures {
	for _, x := range f.fields() {
		if seconds > 0 {
			*x /= seconds
		} else {
			*x = 0
		}
	}
	return f
}
