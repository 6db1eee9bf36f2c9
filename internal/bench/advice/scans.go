package advice

import (
	"bytes"
	"fmt"
	"math"

	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/lookuptrace"
	"github.com/siftkv/siftkv/kv"
)

// A scan is one of a trace, as far as it matters where it leads.
type scan struct {
	lo, hi   []byte // nil: none
	ended    bool   // it came to its end
	backward bool
}

// scanOf takes in a scan of a trace. It reports false for one of which the bounds are not known: of a
// trace of hashes, or longer than a trace keeps.
func scanOf(s *lookuptrace.Scan) (a advise.Scan, of scan, ok bool) {
	for _, b := range []*lookuptrace.Bound{&s.Start, &s.End} {
		if b.Set && (b.Key == nil || len(b.Key) < b.Size) {
			return a, of, false
		}
	}
	if s.Start.Set {
		of.lo = append([]byte{}, s.Start.Key...)
	}
	if s.End.Set {
		of.hi = append([]byte{}, s.End.Key...)
	}
	if s.Backward {
		of.lo, of.hi = of.hi, of.lo
	}
	of.ended, of.backward = s.Ended, s.Backward
	return advise.Scan{At: s.At, Entries: int(min(s.Entries, math.MaxInt32)), Bounded: of.lo != nil && of.hi != nil,
		Prefix: s.Common}, of, true
}

// parts finds which files a scan comes to, and which have nothing for it.
func (s *store) parts(a *advise.Scan, of *scan) error {
	if of.lo != nil && of.hi != nil && bytes.Compare(of.lo, of.hi) >= 0 {
		return nil
	}
	if !of.ended || !a.Bounded {
		return s.brokenOff(a, of)
	}
	e, err := s.db.ExplainScan(&kv.IterOptions{LowerBound: of.lo, UpperBound: of.hi})
	if err != nil {
		return fmt.Errorf("advise: scan from %q to %q: %w", of.lo, of.hi, err)
	}
	for i := range e.Steps {
		step := &e.Steps[i]
		if step.Level < 0 || step.Verdict == kv.RuledOutByBounds || step.Verdict == kv.RuledOutByPrefixFilter {
			continue
		}
		n, ok := s.number[step.Source]
		if !ok {
			return s.strange(step.Source)
		}
		first, last, err := s.span(n, of)
		if err != nil {
			return err
		}
		p := advise.Part{File: n, First: first, Blocks: 1, Empty: step.Verdict != kv.ReadEntries}
		if !p.Empty {
			p.Blocks = last - first + 1
		}
		a.Parts = append(a.Parts, p)
	}
	return nil
}

// brokenOff is parts for a scan that did not come to its end, or has none: it reads a block of each run where
// it begins, and as many more as its entries take, of which each run is taken to give as many as its part
// of all keys is.
func (s *store) brokenOff(a *advise.Scan, of *scan) error {
	keys := s.runKeys()
	for i, done := 0, -1; i < len(s.tables); i++ {
		n := i
		if of.backward {
			n = len(s.tables) - 1 - i
		}
		t, f := s.tables[n].Listing, &s.shape.Files[n]
		if f.Run == done || f.Blocks == 0 || of.lo != nil && t.Before(of.lo) ||
			of.hi != nil && bytes.Compare(t.Smallest, of.hi) >= 0 {
			continue
		}
		done = f.Run
		first, last, err := s.span(int32(n), of)
		if err != nil {
			return err
		}
		entries := float64(a.Entries) * float64(keys[f.Run]) / float64(max(1, s.shape.Keys()))
		blocks := min(last-first+1, 1+int32(entries*float64(f.Blocks)/float64(max(1, f.Keys))))
		if of.backward {
			first = last - blocks + 1
		}
		a.Parts = append(a.Parts, advise.Part{File: int32(n), First: first, Blocks: blocks})
	}
	return nil
}

// runKeys returns the entries of each run.
func (s *store) runKeys() []uint64 {
	keys := make([]uint64, s.shape.Runs)
	for i := range s.shape.Files {
		keys[s.shape.Files[i].Run] += s.shape.Files[i].Keys
	}
	return keys
}

// span returns the first and the last block of a file that may have keys within bounds.
func (s *store) span(n int32, of *scan) (first, last int32, err error) {
	r, blocks := s.tables[n].reader, int(s.shape.Files[n].Blocks)
	at := func(key []byte, none int) (int, error) {
		if key == nil {
			return none, nil
		}
		block, ok, err := r.BlockOf(key)
		if !ok {
			block = blocks - 1
		}
		return block, err
	}
	lo, err := at(of.lo, 0)
	if err != nil {
		return 0, 0, err
	}
	hi, err := at(of.hi, blocks-1)
	return int32(lo), int32(max(lo, hi)), err
}
