package kv

import (
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/lookupsample"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// A lookupWatch tells a tracer, and the sample of Options.LookupSample, of lookups and scans. Each takes those of a
// share of the keys, by their hashes. Other lookups only look at one threshold, which both have in common.
type lookupWatch struct {
	most    atomic.Uint64                // a mixed hash that is not above it may be wanted; 0: there is neither
	tracer  atomic.Pointer[LookupTracer] // nil: none
	sampler *lookupsample.Sampler        // nil: none

	mu sync.Mutex // orders what sets most
}

// begin begins the sample, if the options ask for one.
func (w *lookupWatch) begin(d *DB) {
	if d.opts.LookupSample == 0 {
		return
	}
	blocks := max(d.opts.CacheSize, 0) / int64(d.opts.BlockSize)
	w.sampler = lookupsample.New(d.opts.LookupSample, blocks, d.counters.Gets, func(uint64) { w.setMost() })
	w.setMost()
}

// setTracer takes a tracer in place of the one before; nil: none.
func (w *lookupWatch) setTracer(t *LookupTracer) {
	w.tracer.Store(t)
	w.setMost()
}

// setMost makes the threshold what the tracer and the sampler want now.
func (w *lookupWatch) setMost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	most := uint64(0)
	if w.sampler != nil {
		most = w.sampler.Most()
	}
	if t := w.tracer.Load(); t != nil {
		most = max(most, t.recorder.Most())
	}
	w.most.Store(most)
}

// wants reports whether the tracer or the sample may want lookups of a key with such a hash.
func (w *lookupWatch) wants(hash uint64) bool { return lookuptrace.Mix(hash) <= w.most.Load() }

// samples reports whether lookups of a key with such a hash are in the sample.
func (w *lookupWatch) samples(hash uint64) bool {
	return w.sampler != nil && lookuptrace.Mix(hash) <= w.sampler.Most()
}

// lookup tells of a lookup that has ended.
func (w *lookupWatch) lookup(l *lookup, found bool, err error) {
	if t := w.tracer.Load(); t != nil {
		t.note(l, found, err)
	}
	if w.sampler != nil && err == nil {
		w.sampler.Lookup(l.key, l.hash, found)
	}
}

// sampleKey tells the sampler of a key of a MultiGet.
func (w *lookupWatch) sampleKey(l *lookup, found bool) {
	if w.samples(l.hash) {
		w.sampler.Lookup(l.key, l.hash, found)
	}
}
