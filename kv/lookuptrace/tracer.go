// Package lookuptrace writes down which keys programs look up in stores, and from where to where iterators go:
//
//	tracer, err := lookuptrace.New(f, nil)
//	db.TraceLookups(tracer)
//	... // some minutes of work
//	db.TraceLookups(nil)
//	err = tracer.Close()
//
// Kvbench replays such a trace on other engines, filters and caches, and advice goes by it.
package lookuptrace

import (
	"fmt"
	"io"
	"math"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// A Tracer writes down which keys are looked up, whether they are there, and when. It also writes from where to
// where iterators went. It may serve several stores. All methods are safe for concurrent use.
type Tracer struct{ recorder *lookuptrace.Recorder }

// Options say what a Tracer writes down. Nil is all defaults.
type Options struct {
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

// Stats are what a Tracer has done.
type Stats struct {
	Recorded uint64 // lookups in the trace
	Scans    uint64 // in the trace
	Dropped  uint64 // lookups and scans that found no room in memory, or came after a failed write
	Bytes    uint64 // of the trace
}

func init() {
	lookuptrace.RecorderOf = func(tracer any) *lookuptrace.Recorder { return tracer.(*Tracer).recorder }
}

// New begins a trace, which goes to w: a file, say. It is buffered in 4 MiB of memory, for a second at most. The caller
// closes the tracer, and w after it. W is written to by a goroutine of the tracer's own; a Write that panics, or calls
// runtime.Goexit, has failed. An error about the options matches kv.ErrInvalidOptions.
func New(w io.Writer, o *Options) (*Tracer, error) {
	if w == nil {
		return nil, fmt.Errorf("%w: the writer of the trace is nil", base.ErrInvalidOptions)
	}
	var options Options
	if o != nil {
		options = *o
	}
	if options.OneIn < 0 || uint64(options.OneIn) > math.MaxUint32 {
		return nil, fmt.Errorf("%w: OneIn is %d: want 1 to %d, or 0 for 1", base.ErrInvalidOptions, options.OneIn,
			uint32(math.MaxUint32))
	}
	r, err := lookuptrace.NewRecorder(w, lookuptrace.Options{Keys: options.Keys, OneIn: uint32(options.OneIn)})
	if err != nil {
		return nil, err
	}
	return &Tracer{r}, nil
}

// Stats returns what has been written so far. After Close it is final.
func (t *Tracer) Stats() Stats { return Stats(t.recorder.Stats()) }

// Close writes what is in memory and ends the trace; lookups that come later are not recorded. It returns the first
// error of the writer, and kv.ErrClosed the second time. It does not close the writer.
func (t *Tracer) Close() error { return t.recorder.Close() }
