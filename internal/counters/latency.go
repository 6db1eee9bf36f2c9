package counters

import (
	"time"

	"github.com/siftkv/siftkv/kv/metrics"
)

// To read a clock would slow a lookup down too much, so only one fast operation in timedOneIn is timed. It is one of
// each sixteen in a row of a stripe. Its position differs from one sixteen to the next, so that a program which does
// the same in turns has all of it timed.
const (
	timedBits  = 4
	timedOneIn = 1 << timedBits
)

// An Operation is a fast one, of which only some are timed.
type Operation int

// The operations.
const (
	Get Operation = iota
	Commit
	numOperations
)

// Latencies time the operations of a store; nil: nothing is timed. It takes 170 KiB.
type Latencies struct {
	epoch   time.Time
	stripes [NumStripes]latencyStripe

	// These are rare and long, and all of them are timed.
	sync, flush, stall timings
}

// latencyStripe is what one stripe of goroutines writes to, see OwnStripe.
type latencyStripe struct {
	started [numOperations]counter
	_       [64]byte
	timed   [numOperations]timings
	_       [64]byte
}

// NewLatencies returns a clock whose times count from now.
func NewLatencies() *Latencies { return &Latencies{epoch: time.Now()} }

// NotTimed is when an operation began that is not timed.
const NotTimed time.Duration = -1

// Begin returns when an operation began, for End, or NotTimed.
func (l *Latencies) Begin(op Operation) time.Duration {
	if l == nil {
		return NotTimed
	}
	return l.sample(op)
}

func (l *Latencies) sample(op Operation) time.Duration {
	n := l.stripes[OwnStripe()].started[op].Add(1) - 1
	const multiplier = 0x9e3779b97f4a7c15
	place := n >> timedBits * multiplier >> (64 - timedBits)
	if n%timedOneIn != place {
		return NotTimed
	}
	return time.Since(l.epoch)
}

// End notes that an operation has ended.
func (l *Latencies) End(op Operation, began time.Duration) {
	if began != NotTimed {
		l.record(op, began)
	}
}

func (l *Latencies) record(op Operation, began time.Duration) {
	took := time.Since(l.epoch) - began
	l.stripes[OwnStripe()].timed[op].add(took)
}

// SyncTook returns the function that the commit pipeline calls after each sync; nil: none.
func (l *Latencies) SyncTook() func(time.Duration) {
	if l == nil {
		return nil
	}
	return l.sync.add
}

// Flushed notes that a flush has ended.
func (l *Latencies) Flushed(took time.Duration) {
	if l != nil {
		l.flush.add(took)
	}
}

// Stalled notes that a write has waited for background work.
func (l *Latencies) Stalled(took time.Duration) {
	if l != nil {
		l.stall.add(took)
	}
}

func (l *Latencies) metrics() (m metrics.Latency) {
	if l == nil {
		return m
	}
	sampled := func(op Operation) metrics.Histogram {
		var all []*timings
		for i := range l.stripes {
			all = append(all, &l.stripes[i].timed[op])
		}
		return histogramOf(timedOneIn, all...)
	}
	m.Get, m.Commit = sampled(Get), sampled(Commit)
	m.Sync, m.Flush, m.Stall = histogramOf(1, &l.sync), histogramOf(1, &l.flush), histogramOf(1, &l.stall)
	return m
}
