package version

import (
	"sync"
	"sync/atomic"
)

// A traffic counts sampled lookups of an open table. The clock's hand halves the counts each time
// it passes, so recent lookups count more than older ones.
type traffic struct {
	asked  atomic.Uint32 // lookups
	absent atomic.Uint32 // of these, of keys that the table does not have
	place  int           // in the ring
}

const (
	sampleWeight   = 16 // what a sampled lookup adds: halving then loses little
	samplesPerStep = 16 // of all tables: on average, the hand passes a table once per this many of its samples
	candidates     = 8  // tables among which least chooses
	lookedAt       = 64 // tables that least looks at to find these, at most
)

func halve(n *atomic.Uint32) { n.Store(n.Load() / 2) }

// A ring is the clock (as in the CLOCK algorithm) of the open tables of the stores that share a limit of memory. One
// hand ages the tables' traffic; a second one, seeker, looks for memory to release. No step looks at all tables.
type ring struct {
	samples atomic.Uint64

	mu     sync.Mutex
	tables []*Table
	hand   int
	seeker int
}

func (r *ring) add(t *Table) {
	r.mu.Lock()
	t.traffic.place = len(r.tables)
	r.tables = append(r.tables, t)
	r.mu.Unlock()
}

func (r *ring) remove(t *Table) {
	r.mu.Lock()
	last := r.tables[len(r.tables)-1]
	last.traffic.place = t.traffic.place
	r.tables[t.traffic.place] = last
	r.tables[len(r.tables)-1] = nil
	r.tables = r.tables[:len(r.tables)-1]
	r.mu.Unlock()
}

// count adds a sampled lookup, and reports whether it moved the hand.
func (r *ring) count(t *Table, absent bool) (moved bool) {
	t.traffic.asked.Add(sampleWeight)
	if absent {
		t.traffic.absent.Add(sampleWeight)
	}
	if r.samples.Add(1)%samplesPerStep != 0 || !r.mu.TryLock() {
		return false
	}
	if n := len(r.tables); n > 0 {
		r.hand = (r.hand + 1) % n
		at := &r.tables[r.hand].traffic
		halve(&at.asked)
		halve(&at.absent)
	}
	r.mu.Unlock()
	return true
}

// least moves the seeker past the next few tables that qualify, and returns the one with the
// smallest worth; nil if none of the tables that it passes qualifies. The caller holds mu.
func (r *ring) least(qualifies func(*Table) bool, worth func(*Table) float64) (found *Table, least float64) {
	seen := 0
	for range min(len(r.tables), lookedAt) {
		r.seeker = (r.seeker + 1) % len(r.tables)
		t := r.tables[r.seeker]
		if !qualifies(t) {
			continue
		}
		if w := worth(t); found == nil || w < least {
			found, least = t, w
		}
		if seen++; seen == candidates {
			break
		}
	}
	return found, least
}
