package kv

import (
	"slices"
	"time"
)

// LatencyMetrics are histograms of how long operations took, those that failed included. They
// are empty unless Options.LatencyHistograms is set.
type LatencyMetrics struct {
	// Get is of Get, AppendGet, Has, GetSize and Expiry, of snapshots and transactions too: the part
	// that asks the store. One in 16 is timed. Keys of MultiGet are not in it.
	Get Histogram

	// Commit is of all writes: batches, transactions and single ones, from the call to the return, with
	// whatever they waited for. One in 16 is timed.
	Commit Histogram

	Sync  Histogram // of the log, each for one writer or many: WALSyncs
	Flush Histogram // of memtables to a file: Flushes
	Stall Histogram // waits of writes for background work: Stalls and Slowdowns
}

// To read a clock would slow a lookup down too much, so only one fast operation in
// timedOneIn is timed. It is one of each sixteen in a row of a stripe. Its position differs
// from one sixteen to the next, so that a program which does the same in turns has all of it
// timed.
const (
	timedBits  = 4
	timedOneIn = 1 << timedBits
)

// An operation is one of those that are timed now and then.
type operation int

const (
	opGet operation = iota
	opCommit
	numOperations
)

// latencies time the operations of a store; nil: nothing is timed. It takes 170 KiB.
type latencies struct {
	epoch   time.Time
	stripes [numStripes]latencyStripe

	// These are rare and long, and all of them are timed.
	sync, flush, stall timings
}

// latencyStripe is what one stripe of goroutines writes to, see ownStripe.
type latencyStripe struct {
	started [numOperations]counter
	_       [64]byte
	timed   [numOperations]timings
	_       [64]byte
}

func newLatencies(o *Options) *latencies {
	if !o.LatencyHistograms {
		return nil
	}
	return &latencies{epoch: time.Now()}
}

// notTimed is when an operation began that is not timed.
const notTimed time.Duration = -1

// begin returns when an operation began, for end, or notTimed.
func (l *latencies) begin(op operation) time.Duration {
	if l == nil {
		return notTimed
	}
	return l.sample(op)
}

func (l *latencies) sample(op operation) time.Duration {
	n := l.stripes[ownStripe()].started[op].Add(1) - 1
	const multiplier = 0x9e3779b97f4a7c15
	place := n >> timedBits * multiplier >> (64 - timedBits)
	if n%timedOneIn != place {
		return notTimed
	}
	return time.Since(l.epoch)
}

// end notes that an operation has ended.
func (l *latencies) end(op operation, began time.Duration) {
	if began != notTimed {
		l.record(op, began)
	}
}

func (l *latencies) record(op operation, began time.Duration) {
	took := time.Since(l.epoch) - began
	l.stripes[ownStripe()].timed[op].add(took)
}

// syncTook returns the function that the commit pipeline calls after each sync; nil: none.
func (l *latencies) syncTook() func(time.Duration) {
	if l == nil {
		return nil
	}
	return l.sync.add
}

// flushed notes that a flush has ended.
func (l *latencies) flushed(took time.Duration) {
	if l != nil {
		l.flush.add(took)
	}
}

// stalled notes that a write has waited for background work.
func (l *latencies) stalled(took time.Duration) {
	if l != nil {
		l.stall.add(took)
	}
}

// metrics returns the histograms.
func (l *latencies) metrics() (m LatencyMetrics) {
	if l == nil {
		return m
	}
	sampled := func(op operation) Histogram {
		var all []*timings
		for i := range l.stripes {
			all = append(all, &l.stripes[i].timed[op])
		}
		return histogramOf(timedOneIn, all...)
	}
	m.Get, m.Commit = sampled(opGet), sampled(opCommit)
	m.Sync, m.Flush, m.Stall = histogramOf(1, &l.sync), histogramOf(1, &l.flush), histogramOf(1, &l.stall)
	return m
}

func histogramOf(oneIn uint64, all ...*timings) Histogram {
	h := Histogram{OneIn: oneIn, counts: make([]uint64, numBuckets)}
	for _, t := range all {
		t.addTo(&h)
	}
	for len(h.counts) > 0 && h.counts[len(h.counts)-1] == 0 {
		h.counts = h.counts[:len(h.counts)-1]
	}
	h.counts = slices.Clip(h.counts)
	return h
}

// Sub returns what was timed since prev.
func (m LatencyMetrics) Sub(prev LatencyMetrics) LatencyMetrics {
	return LatencyMetrics{
		Get: m.Get.Sub(prev.Get), Commit: m.Commit.Sub(prev.Commit), Sync: m.Sync.Sub(prev.Sync),
		Flush: m.Flush.Sub(prev.Flush), Stall: m.Stall.Sub(prev.Stall),
	}
}
