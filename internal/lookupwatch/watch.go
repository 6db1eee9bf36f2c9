// Package lookupwatch tells a tracer, and the sample of kv.Options.LookupSample, of lookups and scans. Each takes those
// of a share of the keys, by their hashes. Other lookups only compare with one threshold, which both have in common.
package lookupwatch

import (
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/lookupsample"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// A Watch has the tracer and the sample of one store. The zero value has neither. Its methods are safe for concurrent
// use, except StartSample.
type Watch struct {
	Threshold atomic.Uint64 // a mixed hash that is not above it may be wanted; 0: there is no tracer and no sample

	tracer  atomic.Pointer[lookuptrace.Recorder] // nil: none
	sampler *lookupsample.Sampler                // nil: none

	mu sync.Mutex // orders Update
}

// StartSample starts the sample, which takes up to the given bytes: see lookupsample.New.
func (w *Watch) StartSample(bytes, cacheBlocks int64, lookups func() uint64) {
	w.sampler = lookupsample.New(bytes, cacheBlocks, lookups, func(uint64) { w.Update() })
	w.Update()
}

// Sampler returns the sample; nil if there is none.
func (w *Watch) Sampler() *lookupsample.Sampler { return w.sampler }

// SetTracer takes a tracer in place of the one before; nil: none.
func (w *Watch) SetTracer(t *lookuptrace.Recorder) {
	w.tracer.Store(t)
	w.Update()
}

// Update sets the threshold to what the tracer and the sample want now.
func (w *Watch) Update() {
	w.mu.Lock()
	defer w.mu.Unlock()
	threshold := uint64(0)
	if w.sampler != nil {
		threshold = w.sampler.Most()
	}
	if t := w.tracer.Load(); t != nil {
		threshold = max(threshold, t.Most())
	}
	w.Threshold.Store(threshold)
}

// Wants reports whether the tracer or the sample may want lookups of a key with such a hash.
func (w *Watch) Wants(hash uint64) bool { return lookuptrace.Mix(hash) <= w.Threshold.Load() }

// samples reports whether lookups of a key with such a hash are in the sample.
func (w *Watch) samples(hash uint64) bool {
	return w.sampler != nil && lookuptrace.Mix(hash) <= w.sampler.Most()
}

// Lookup records a lookup without an error; value says that it was of the value.
func (w *Watch) Lookup(key []byte, hash uint64, found, value bool) {
	if t := w.tracer.Load(); t != nil {
		t.Record(key, hash, found, value)
	}
	if w.sampler != nil {
		w.sampler.Lookup(key, hash, found)
	}
}

// SampleKey tells the sample of a key of a MultiGet.
func (w *Watch) SampleKey(key []byte, hash uint64, found bool) {
	if w.samples(hash) {
		w.sampler.Lookup(key, hash, found)
	}
}

// TraceMany tells the tracer of the lookups of a MultiGet, in the order of the caller.
func (w *Watch) TraceMany(keys, values [][]byte) {
	t := w.tracer.Load()
	if t == nil {
		return
	}
	for i, key := range keys {
		t.Record(key, filterpolicy.Hash(key), values[i] != nil, true)
	}
}
