package keys

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// A Walk is what a lookup trace says of itself, once it was read.
type Walk struct {
	lookuptrace.Header
	Bytes      int64  // of the file
	Lookups    int64  // in it
	Scans      int64  // in it
	Dropped    uint64 // lookups and scans that it is known to lack
	Unfinished bool   // it has no end
}

// OpenRecords opens a trace, whose file the caller closes. What is no trace matches bench.ErrUsage.
func OpenRecords(path string) (*lookuptrace.Reader, *os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, bench.Usagef("trace: %w", err)
	}
	r, err := lookuptrace.NewReader(f, path)
	if errors.Is(err, lookuptrace.ErrNotTrace) {
		err = bench.Usagef("%w; lookuptrace.Tracer writes one", err)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return r, f, nil
}

// WalkTrace visits the lookups of a trace in the order of the file, which is that of
// time only within a frame. A lookup has no key (nil) if the trace has hashes, and its key is good
// until visit returns; an error of visit ends the walk. A trace without an end is read
// as far as it goes; damage is an error, and what is no trace matches bench.ErrUsage. Scans
// are counted.
func WalkTrace(path string, visit func(l *lookuptrace.Lookup) error) (*Walk, error) {
	return WalkRecords(path, visit, func(*lookuptrace.Scan) error { return nil })
}

// WalkRecords is WalkTrace, and visits scans as well.
func WalkRecords(path string, lookup func(l *lookuptrace.Lookup) error,
	scan func(s *lookuptrace.Scan) error) (*Walk, error) {
	r, f, err := OpenRecords(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	w := &Walk{Header: r.Header()}
	if info, err := f.Stat(); err == nil {
		w.Bytes = info.Size()
	}
	for {
		l, s, err := r.NextRecord()
		w.Unfinished = errors.Is(err, lookuptrace.ErrUnfinished)
		switch {
		case w.Unfinished || errors.Is(err, io.EOF):
			w.Dropped = r.Dropped()
			return w, nil
		case err != nil:
			return nil, fmt.Errorf("after %d good lookups and %d good scans: %w", w.Lookups, w.Scans, err)
		case s != nil:
			err = scan(s)
			w.Scans++
		default:
			err = lookup(&l)
			w.Lookups++
		}
		if err != nil {
			return nil, err
		}
	}
}
