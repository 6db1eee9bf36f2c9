package lookupwatch

import (
	"bytes"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/lookupsample"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// A Scan is what an iterator does from one seek to the next, for a tracer and the sample.
type Scan struct {
	tracer  *lookuptrace.Recorder // nil: there is none; it knows itself what it wants
	sampler *lookupsample.Sampler // nil: it does not want the scan
	hash    uint64                // of the start
	scan    lookupsample.Scan
}

// Begin begins a scan within bounds if the tracer or the sample wants it, and reports whether one does. The scan begins
// at key, or at a bound if that is nil. The bounds stay the caller's, and unchanged until End.
func (s *Scan) Begin(w *Watch, key, lower, upper []byte, backward bool) (wanted bool) {
	end := upper
	if backward {
		if end = lower; upper != nil && (key == nil || bytes.Compare(key, upper) > 0) {
			key = upper
		}
	} else if lower != nil && bytes.Compare(key, lower) < 0 {
		key = lower
	}
	hash := filterpolicy.Hash(key)
	if !w.Wants(hash) {
		return false
	}
	if key != nil { // the copy has the memory of the last scan's, and an empty key stays one
		key = append(slices.Grow(s.scan.Start[:0], len(key)+1), key...)
	}
	*s = Scan{tracer: w.tracer.Load(), hash: hash, scan: lookupsample.Scan{Start: key, End: end, Backward: backward}}
	if w.samples(hash) {
		s.sampler = w.sampler
	}
	return true
}

// End records the scan. It reached a number of entries; ended says that it reached its end.
func (s *Scan) End(entries uint64, ended, keysOnly bool) {
	s.scan.Entries, s.scan.Ended = entries, ended
	if o := &s.scan; s.tracer != nil {
		s.tracer.RecordScan(&lookuptrace.Scan{
			Start: lookuptrace.Bound{Set: o.Start != nil, Key: o.Start}, Entries: entries, Ended: ended,
			End: lookuptrace.Bound{Set: o.End != nil, Key: o.End}, Backward: o.Backward, KeysOnly: keysOnly}, s.hash)
	}
	if s.sampler != nil {
		s.sampler.Scan(&s.scan, s.hash)
	}
}
