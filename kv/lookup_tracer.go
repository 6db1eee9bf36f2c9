package kv

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// A LookupTracer writes down which keys are looked up, whether they are there, and
// when, and from where to where iterators went, for kvbench to replay on other engines, filters and
// caches, and for advice. See DB.TraceLookups. It may serve several stores. All methods are safe for concurrent use.
type LookupTracer struct{ recorder *lookuptrace.Recorder }

// LookupTraceOptions say what a LookupTracer writes down. Nil is all defaults.
type LookupTraceOptions struct {
	// Keys writes the keys themselves, and then the trace is as confidential as they
	// are. By default it has a hash of each (hash/maphash), seeded with a secret that is
	// in no trace, so that keys are not found by hashing guesses; that is no proof
	// against cryptanalysis, and how often and when each key was looked up, and how long
	// it is, is still there, as is how many bytes the bounds of a scan begin with in common. A replay of
	// hashes makes keys up, of the same lengths; those that were neighbours are not.
	Keys bool

	// OneIn writes the lookups of one key in so many, and the scans that start at it: 1 by default, which
	// is all keys.
	// Which ones is decided by their hashes, so that of a key all lookups are there or
	// none, and the same keys each time. A cache that is as many times smaller then
	// finds about as much (SHARDS: C. A. Waldspurger et al., "Efficient MRC construction
	// with SHARDS", FAST 2015).
	OneIn int
}

// LookupTraceStats are what a LookupTracer has done.
type LookupTraceStats struct {
	Recorded uint64 // lookups in the trace
	Scans    uint64 // in the trace
	Dropped  uint64 // lookups and scans that found no room in memory, or came after a failed write
	Bytes    uint64 // of the trace
}

// NewLookupTracer begins a trace, which goes to w: a file, say. It is buffered in 4 MiB
// of memory, for a second at most. The caller closes the tracer, and w after it. W is written to by a goroutine of the
// tracer's own; a Write that panics, or calls runtime.Goexit, has failed.
func NewLookupTracer(w io.Writer, o *LookupTraceOptions) (*LookupTracer, error) {
	if w == nil {
		return nil, errNilWriter
	}
	var options LookupTraceOptions
	if o != nil {
		options = *o
	}
	if options.OneIn < 0 || uint64(options.OneIn) > math.MaxUint32 {
		return nil, fmt.Errorf("%w: OneIn is %d: want 1 to %d, or 0 for 1", ErrInvalidOptions, options.OneIn,
			uint32(math.MaxUint32))
	}
	r, err := lookuptrace.NewRecorder(w, lookuptrace.Options{Keys: options.Keys, OneIn: uint32(options.OneIn)})
	if err != nil {
		return nil, err
	}
	return &LookupTracer{r}, nil
}

// TraceLookups has the tracer write down lookups and scans from now on, in place of the one
// before, if there is one; nil ends it. Lookups are those of Get, AppendGet, Has, GetSize,
// Expiry and MultiGet (each key is one) of the store, its snapshots and its transactions, but
// for errors and for what a transaction finds among its own writes. GetSize and Expiry are
// written as Has is. A scan is what an iterator does from First, Last or a seek to the next, or until it is
// closed: where it starts, its bound there, and how many entries it comes to. One that fails is not
// written.
//
// Nothing ever waits for the tracer: a lookup or scan is written into memory, and what finds no room
// there, because w is slower, is dropped and counted. A key that is
// recorded makes its lookup longer by two readings of the clock or so; without a tracer
// there is one comparison, of a lookup and of a seek.
func (d *DB) TraceLookups(t *LookupTracer) { d.watch.setTracer(t) }

// Stats returns what has been written so far. After Close it is final.
func (t *LookupTracer) Stats() LookupTraceStats { return LookupTraceStats(t.recorder.Stats()) }

// Close writes what is in memory and ends the trace; lookups that come later are not
// recorded. It returns the first error of the writer, and ErrClosed the second time. It
// does not close the writer.
func (t *LookupTracer) Close() error {
	err := t.recorder.Close()
	if errors.Is(err, lookuptrace.ErrClosed) {
		return ErrClosed
	}
	return err
}

// note writes a lookup down that has ended.
func (t *LookupTracer) note(l *lookup, found bool, err error) {
	if err == nil {
		t.recorder.Record(l.key, l.hash, found, l.want && !l.sizeOnly)
	}
}

// noteAll writes down lookups of many keys, in the order of the caller.
func (t *LookupTracer) noteAll(keys, values [][]byte) {
	for i, key := range keys {
		t.recorder.Record(key, filterpolicy.Hash(key), values[i] != nil, true)
	}
}
