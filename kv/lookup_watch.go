package kv

import (
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/lookupsample"
	trace "github.com/siftkv/siftkv/internal/lookuptrace"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

// A lookupWatch tells a tracer, and the sample of Options.LookupSample, of lookups and scans. Each takes those of a
// share of the keys, by their hashes. Other lookups only look at one threshold, which both have in common.
type lookupWatch struct {
	most    atomic.Uint64                  // a mixed hash that is not above it may be wanted; 0: there is neither
	tracer  atomic.Pointer[trace.Recorder] // nil: none
	sampler *lookupsample.Sampler          // nil: none

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
func (w *lookupWatch) setTracer(t *trace.Recorder) {
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
		most = max(most, t.Most())
	}
	w.most.Store(most)
}

// wants reports whether the tracer or the sample may want lookups of a key with such a hash.
func (w *lookupWatch) wants(hash uint64) bool { return trace.Mix(hash) <= w.most.Load() }

// samples reports whether lookups of a key with such a hash are in the sample.
func (w *lookupWatch) samples(hash uint64) bool {
	return w.sampler != nil && trace.Mix(hash) <= w.sampler.Most()
}

// lookup tells of a lookup that has ended.
func (w *lookupWatch) lookup(l *lookup, found bool, err error) {
	if err != nil {
		return
	}
	if t := w.tracer.Load(); t != nil {
		t.Record(l.key, l.hash, found, l.want && !l.sizeOnly)
	}
	if w.sampler != nil {
		w.sampler.Lookup(l.key, l.hash, found)
	}
}

// sampleKey tells the sampler of a key of a MultiGet.
func (w *lookupWatch) sampleKey(l *lookup, found bool) {
	if w.samples(l.hash) {
		w.sampler.Lookup(l.key, l.hash, found)
	}
}

// traceMany tells the tracer of the lookups of a MultiGet, in the order of the caller.
func (w *lookupWatch) traceMany(keys, values [][]byte) {
	t := w.tracer.Load()
	if t == nil {
		return
	}
	for i, key := range keys {
		t.Record(key, filterpolicy.Hash(key), values[i] != nil, true)
	}
}

// TraceLookups has the tracer write down lookups and scans from now on, in place of the tracer before, if there is
// one; nil ends it. Lookups are those of Get, AppendGet, GetReader, Has, GetSize, Expiry and MultiGet (each key is
// one) of the store, its snapshots and its transactions. Errors are left out, and what a transaction finds among its
// own writes. GetSize and Expiry are written as Has is. A scan is what an iterator does from First, Last or a seek to
// the next, or until it is closed. The trace has where it starts, its bound there, and how many entries it reaches.
// One that fails is not written.
//
// Nothing ever waits for the tracer: a lookup or scan is written into memory, and what finds no room there, because w
// is slower, is dropped and counted. To record a key makes its lookup longer by two readings of the clock or so.
// Without a tracer a lookup or a seek makes one comparison.
func (d *DB) TraceLookups(t *lookuptrace.Tracer) {
	if t == nil {
		d.watch.setTracer(nil)
		return
	}
	d.watch.setTracer(trace.RecorderOf(t))
}
