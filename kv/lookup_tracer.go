package kv

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// A LookupTracer writes down which keys are looked up, whether they are there, and when. It also writes from where to
// where iterators went. Kvbench replays the trace on other engines, filters and caches, and DB.Advise reads it. See
// DB.TraceLookups. It may serve several stores. All methods are safe for concurrent use.
type LookupTracer struct{ recorder *lookuptrace.Recorder }

// LookupTraceOptions say what a LookupTracer writes down. Nil is all defaults.
type LookupTraceOptions struct {
	// Keys writes the keys themselves, and then the trace is as confidential as they are. By default it has a hash of
	// each (hash/maphash), seeded with a secret that is in no trace, so that keys are not found by hashing guesses.
	// That is no proof against cryptanalysis. The trace still shows how often and when each key was looked up, how
	// long it is, and how many first bytes the bounds of a scan have in common. A replay of hashes makes up keys of
	// the same lengths; neighbours do not stay neighbours.
	Keys bool

	// OneIn writes the lookups of one key in OneIn, and the scans that start at it: 1 by default, which is all keys.
	// The hash of a key decides, so that all its lookups are there or none, and the same keys each time. A cache that
	// is OneIn times smaller then finds about as much (SHARDS: C. A. Waldspurger et al., "Efficient MRC construction
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
