package advice

import (
	"bytes"
	"fmt"

	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/explain"
)

// parts finds which files a scan comes to, and which have nothing for it.
func (s *store) parts(a *advise.Scan) error {
	lo, hi := a.Bounds()
	if lo != nil && hi != nil && bytes.Compare(lo, hi) >= 0 {
		return nil
	}
	if !a.Ended || !a.Bounded {
		return s.brokenOff(a)
	}
	e, err := s.db.ExplainScan(&kv.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return fmt.Errorf("advise: scan from %q to %q: %w", lo, hi, err)
	}
	for i := range e.Steps {
		step, v := &e.Steps[i], e.Steps[i].Verdict
		if step.Level < 0 || v == explain.RuledOutByBounds || v == explain.RuledOutByPrefixFilter {
			continue
		}
		n, ok := s.number[step.Source]
		if !ok {
			return s.strange(step.Source)
		}
		first, last, err := s.span(n, lo, hi)
		if err != nil {
			return err
		}
		p := advise.Part{File: n, First: first, Blocks: 1, Empty: step.Verdict != explain.ReadEntries}
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
func (s *store) brokenOff(a *advise.Scan) error {
	lo, hi := a.Bounds()
	keys := s.runKeys()
	for i, done := 0, -1; i < len(s.tables); i++ {
		n := i
		if a.Backward {
			n = len(s.tables) - 1 - i
		}
		t, f := s.tables[n].Listing, &s.shape.Files[n]
		if f.Run == done || f.Blocks == 0 || lo != nil && t.Before(lo) ||
			hi != nil && bytes.Compare(t.Smallest, hi) >= 0 {
			continue
		}
		done = f.Run
		first, last, err := s.span(int32(n), lo, hi)
		if err != nil {
			return err
		}
		entries := float64(a.Entries) * float64(keys[f.Run]) / float64(max(1, s.shape.Keys()))
		blocks := min(last-first+1, 1+int32(entries*float64(f.Blocks)/float64(max(1, f.Keys))))
		if a.Backward {
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
func (s *store) span(n int32, lo, hi []byte) (first, last int32, err error) {
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
	low, err := at(lo, 0)
	if err != nil {
		return 0, 0, err
	}
	high, err := at(hi, blocks-1)
	return int32(low), int32(max(low, high)), err
}
