// Package stats counts what each layer of the service was asked. Counters never
// go down, so the difference of two snapshots gives rates; the two gauges
// (Database.Running, Database.Waiting) are marked as such.
package stats

import (
	"sync"
	"sync/atomic"
	"time"
)

// Counters is what a service counts. The zero value is not ready; see New. All
// methods and fields may be used from many goroutines.
type Counters struct {
	Users    Filter   // the set of user identifiers
	Names    Filter   // the set of names
	Banned   Filter   // the black list
	Feed     Filter   // items that users have seen: "no" is an item to show
	Cache    Cache    // rows in Redis
	Database Database // the source of truth
	Shared   atomic.Uint64

	began   time.Time
	latency *Histogram
	mu      sync.Mutex
	status  map[int]uint64
}

// Filter counts the keys that one filter was asked for. Each key gets one of the
// two answers; an answer that came with an error is a "maybe" and an error too.
type Filter struct {
	Asked, No, Maybe, Errors atomic.Uint64
	Full                     atomic.Uint64 // keys that were refused for want of room
}

// Answered counts one key, what the filter said of it, and whether it could tell.
func (f *Filter) Answered(maybe bool, err error) {
	f.Asked.Add(1)
	if err != nil {
		f.Errors.Add(1)
	}
	if maybe {
		f.Maybe.Add(1)
	} else {
		f.No.Add(1)
	}
}

// Cache counts reads of the cache. A null hit is an entry that says "no such row".
// A read that failed is a miss and an error.
type Cache struct {
	Asked, Hits, NullHits, Misses, Errors atomic.Uint64
}

// Database counts statements. Empty are reads that found no row, such as those of filters' false
// positives; Inserts are all writes. Shed are statements refused because the queue was full or the
// wait too long: they never reached the database.
type Database struct {
	Queries, Empty, Inserts, Shed, Errors atomic.Uint64
	Running, Waiting                      atomic.Int64 // gauges
}

// New returns counters at zero.
func New() *Counters {
	return &Counters{began: time.Now(), latency: NewHistogram(), status: make(map[int]uint64)}
}

// Request counts one request that was answered with status after d.
func (c *Counters) Request(status int, d time.Duration) {
	c.latency.Record(d)
	c.mu.Lock()
	c.status[status]++
	c.mu.Unlock()
}
