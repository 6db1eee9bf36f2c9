package tablecache

import (
	"sync"
	"sync/atomic"
)

// A traffic counts sampled lookups of an open table. The clock's hand halves the counts each time
// it passes, so recent lookups count more than older ones.
type traffic struct {
	asked    atomic.Uint32 // lookups
	absent   atomic.Uint32 // of these, of keys that the table does not have
	position int           // in the clock
}

const (
	sampleWeight   = 16 // what a sampled lookup adds: halving then loses little
	samplesPerStep = 16 // of all tables: on average, the hand passes a table once per this many of its samples
	candidates     = 8  // tables among which minWorth chooses
	maxVisited     = 64 // tables that minWorth looks at to find these, at most
)

func halve(n *atomic.Uint32) { n.Store(n.Load() / 2) }

// A clock (as in the CLOCK algorithm) has the open tables of the stores that share a limit of memory, and two hands.
// One ages the tables' traffic; the other looks for memory to release. No step looks at all tables.
type clock struct {
	samples atomic.Uint64

	mu       sync.Mutex
	tables   []*Entry
	ageing   int // position of the hand that ages traffic
	evicting int // position of the hand that looks for memory
}

func (c *clock) add(t *Entry) {
	c.mu.Lock()
	t.traffic.position = len(c.tables)
	c.tables = append(c.tables, t)
	c.mu.Unlock()
}

func (c *clock) remove(t *Entry) {
	c.mu.Lock()
	last := c.tables[len(c.tables)-1]
	last.traffic.position = t.traffic.position
	c.tables[t.traffic.position] = last
	c.tables[len(c.tables)-1] = nil
	c.tables = c.tables[:len(c.tables)-1]
	c.mu.Unlock()
}

// count adds a sampled lookup, and reports whether it moved the hand.
func (c *clock) count(t *Entry, absent bool) (moved bool) {
	t.traffic.asked.Add(sampleWeight)
	if absent {
		t.traffic.absent.Add(sampleWeight)
	}
	if c.samples.Add(1)%samplesPerStep != 0 || !c.mu.TryLock() {
		return false
	}
	if n := len(c.tables); n > 0 {
		c.ageing = (c.ageing + 1) % n
		at := &c.tables[c.ageing].traffic
		halve(&at.asked)
		halve(&at.absent)
	}
	c.mu.Unlock()
	return true
}

// minWorth moves the second hand past the next few tables that qualify, and returns the one with the
// smallest worth; nil if none of the tables that it passes qualifies. The caller holds mu.
func (c *clock) minWorth(qualifies func(*Entry) bool, worth func(*Entry) float64) (found *Entry, smallest float64) {
	seen := 0
	for range min(len(c.tables), maxVisited) {
		c.evicting = (c.evicting + 1) % len(c.tables)
		t := c.tables[c.evicting]
		if !qualifies(t) {
			continue
		}
		if w := worth(t); found == nil || w < smallest {
			found, smallest = t, w
		}
		if seen++; seen == candidates {
			break
		}
	}
	return found, smallest
}
