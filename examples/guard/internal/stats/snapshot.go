package stats

import (
	"maps"
	"sync/atomic"
	"time"
)

// Snapshot is the counters at one time, as GET /stats sends them.
type Snapshot struct {
	Time     time.Time        `json:"time"`
	Uptime   float64          `json:"uptime_seconds"`
	Requests uint64           `json:"requests"`
	Status   map[int]uint64   `json:"status"` // requests by status, "200": 12
	Users    FilterSnapshot   `json:"users"`
	Names    FilterSnapshot   `json:"names"`
	Banned   FilterSnapshot   `json:"banned"`
	Feed     FilterSnapshot   `json:"feed"`
	Cache    CacheSnapshot    `json:"cache"`
	Database DatabaseSnapshot `json:"database"`
	Shared   uint64           `json:"shared"` // reads that waited for another's query of the same key
	Latency  Latency          `json:"latency"`
}

// FilterSnapshot is Filter at one time.
type FilterSnapshot struct {
	Asked  uint64 `json:"asked"`
	No     uint64 `json:"no"`
	Maybe  uint64 `json:"maybe"`
	Errors uint64 `json:"errors"`
	Full   uint64 `json:"full"`
}

// CacheSnapshot is Cache at one time.
type CacheSnapshot struct {
	Asked    uint64 `json:"asked"`
	Hits     uint64 `json:"hits"`
	NullHits uint64 `json:"null_hits"`
	Misses   uint64 `json:"misses"`
	Errors   uint64 `json:"errors"`
}

// DatabaseSnapshot is Database at one time.
type DatabaseSnapshot struct {
	Queries uint64 `json:"queries"`
	Empty   uint64 `json:"empty"` // of Queries: reads that found no row
	Inserts uint64 `json:"inserts"`
	Shed    uint64 `json:"shed"`
	Errors  uint64 `json:"errors"`
	Running int64  `json:"running"` // a gauge
	Waiting int64  `json:"waiting"` // a gauge
}

// Snapshot reads all counters. Requests that are under way may be counted in
// one layer and not yet in the next.
func (c *Counters) Snapshot() Snapshot {
	now := time.Now()
	s := Snapshot{
		Time: now, Uptime: now.Sub(c.began).Seconds(), Shared: c.Shared.Load(),
		Users: c.Users.snapshot(), Names: c.Names.snapshot(), Banned: c.Banned.snapshot(), Feed: c.Feed.snapshot(),
		Latency: c.latency.Snapshot(),
	}
	load := func(counters ...*atomic.Uint64) (v [5]uint64) {
		for i, n := range counters {
			v[i] = n.Load()
		}
		return v
	}
	k := load(&c.Cache.Asked, &c.Cache.Hits, &c.Cache.NullHits, &c.Cache.Misses, &c.Cache.Errors)
	s.Cache = CacheSnapshot{Asked: k[0], Hits: k[1], NullHits: k[2], Misses: k[3], Errors: k[4]}
	d := load(&c.Database.Queries, &c.Database.Empty, &c.Database.Inserts, &c.Database.Shed, &c.Database.Errors)
	s.Database = DatabaseSnapshot{
		Queries: d[0], Empty: d[1], Inserts: d[2], Shed: d[3], Errors: d[4],
		Running: c.Database.Running.Load(), Waiting: c.Database.Waiting.Load(),
	}
	c.mu.Lock()
	s.Status = maps.Clone(c.status)
	c.mu.Unlock()
	for _, n := range s.Status {
		s.Requests += n
	}
	return s
}

func (f *Filter) snapshot() FilterSnapshot {
	return FilterSnapshot{
		Asked: f.Asked.Load(), No: f.No.Load(), Maybe: f.Maybe.Load(), Errors: f.Errors.Load(), Full: f.Full.Load(),
	}
}

// Add returns the sum of two filters' counts.
func (f FilterSnapshot) Add(g FilterSnapshot) FilterSnapshot {
	return FilterSnapshot{
		Asked: f.Asked + g.Asked, No: f.No + g.No, Maybe: f.Maybe + g.Maybe, Errors: f.Errors + g.Errors,
		Full: f.Full + g.Full,
	}
}
