// Package rangedel answers which range tombstones cover a key.
//
// Tombstones overlap as their writers please. A Set cuts them at every start
// and end into fragments that do not, so that one binary search finds all the
// tombstones over a key:
//
//	a───────────m            #9        a──f──m──t   fragments
//	      f───────────t      #4        9  9  4      newest first
//	                                      4
package rangedel

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"sort"

	"github.com/siftkv/siftkv/internal/base"
)

// A Tombstone deletes every version below Seq of the user keys in [Start, End).
// A nil End has no bound.
type Tombstone struct {
	Start, End []byte
	Seq        base.SeqNum
}

// Empty reports whether the tombstone covers no key at all.
func (t Tombstone) Empty() bool { return t.End != nil && bytes.Compare(t.Start, t.End) >= 0 }

// CompareEnds orders two upper bounds; nil is after every key.
func CompareEnds(a, b []byte) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return bytes.Compare(a, b)
}

// A Fragment is a span that the same tombstones cover from start to end.
type Fragment struct {
	Start, End []byte        // End nil: no bound
	Seqs       []base.SeqNum // descending, without duplicates
}

// newestAt returns the largest sequence number at or below at, or 0.
func (f *Fragment) newestAt(at base.SeqNum) base.SeqNum {
	for _, s := range f.Seqs {
		if s <= at {
			return s
		}
	}
	return 0
}

// A Set holds tombstones as fragments. It is immutable and safe for concurrent
// use; a nil Set is empty.
type Set struct{ frags []Fragment }

// NewSet cuts tombstones into fragments. A fragment lists all that cover it, so
// time and space are O(n log n + n d) for n tombstones of which up to d overlap. It
// keeps the tombstones' slices.
func NewSet(ts []Tombstone) *Set {
	ts, cuts := cut(ts)
	if len(ts) == 0 {
		return nil
	}
	s := &Set{}
	var open []Tombstone // those that cover the current span
	for i, from := range cuts {
		for len(ts) > 0 && bytes.Compare(ts[0].Start, from) <= 0 {
			open, ts = append(open, ts[0]), ts[1:]
		}
		open = slices.DeleteFunc(open, func(t Tombstone) bool { return CompareEnds(t.End, from) <= 0 })
		if len(open) == 0 {
			continue
		}
		var to []byte // the last span has no end
		if i+1 < len(cuts) {
			to = cuts[i+1]
		}
		s.frags = append(s.frags, Fragment{Start: from, End: to, Seqs: seqsOf(open)})
	}
	return s
}

// FromFragments makes a set of tombstones that are fragments already, as Clip
// returns them: sorted, those of one span side by side and newest first, and spans
// that do not overlap. It takes O(n), and refuses anything else.
func FromFragments(ts []Tombstone) (*Set, error) {
	s := &Set{}
	for _, t := range ts {
		if t.Start == nil {
			t.Start = []byte{}
		}
		if n := len(s.frags); n > 0 && bytes.Equal(s.frags[n-1].Start, t.Start) {
			f := &s.frags[n-1]
			if CompareEnds(f.End, t.End) != 0 || f.Seqs[len(f.Seqs)-1] <= t.Seq {
				return nil, errFragments
			}
			f.Seqs = append(f.Seqs, t.Seq)
			continue
		} else if n > 0 && CompareEnds(s.frags[n-1].End, t.Start) > 0 {
			return nil, errFragments
		}
		if t.Empty() {
			return nil, errFragments
		}
		s.frags = append(s.frags, Fragment{Start: t.Start, End: t.End, Seqs: []base.SeqNum{t.Seq}})
	}
	return s, nil
}

var errFragments = errors.New("range tombstones overlap or are out of order")

// cut returns those that cover a key, sorted by their starts, none of which is nil, and the
// places to cut at: every start and bounded end, sorted, once each.
func cut(ts []Tombstone) (sorted []Tombstone, cuts [][]byte) {
	sorted = slices.DeleteFunc(slices.Clone(ts), Tombstone.Empty)
	for i := range sorted {
		t := &sorted[i]
		if t.Start == nil {
			t.Start = []byte{} // from here on nil is an end without a bound
		}
		cuts = append(cuts, t.Start)
		if t.End != nil {
			cuts = append(cuts, t.End)
		}
	}
	slices.SortFunc(sorted, func(a, b Tombstone) int { return bytes.Compare(a.Start, b.Start) })
	slices.SortFunc(cuts, bytes.Compare)
	return sorted, slices.CompactFunc(cuts, bytes.Equal)
}

func seqsOf(ts []Tombstone) []base.SeqNum {
	seqs := make([]base.SeqNum, len(ts))
	for i, t := range ts {
		seqs[i] = t.Seq
	}
	slices.SortFunc(seqs, func(a, b base.SeqNum) int { return cmp.Compare(b, a) })
	return slices.Compact(seqs)
}

// Empty reports whether the set holds no tombstone.
func (s *Set) Empty() bool { return s == nil || len(s.frags) == 0 }

// Fragments returns the fragments in order. The caller must not change them.
func (s *Set) Fragments() []Fragment {
	if s == nil {
		return nil
	}
	return s.frags
}

// Cover returns the newest sequence number, at or below at, of a tombstone over
// key; 0 if there is none. It takes O(log n).
func (s *Set) Cover(key []byte, at base.SeqNum) base.SeqNum {
	if f := s.find(key); f != nil {
		return f.newestAt(at)
	}
	return 0
}

// Span is Cover that also returns the fragment's bounds.
func (s *Set) Span(key []byte, at base.SeqNum) (start, end []byte, seq base.SeqNum) {
	if f := s.find(key); f != nil {
		return f.Start, f.End, f.newestAt(at)
	}
	return nil, nil, 0
}

// NewestIn returns the newest sequence number of a tombstone over any key of
// [lo, hi), where a nil hi has no bound; 0 if there is none. It takes O(log n) and a
// step for each fragment.
func (s *Set) NewestIn(lo, hi []byte) (seq base.SeqNum) {
	if s == nil || (Tombstone{Start: lo, End: hi}).Empty() {
		return 0
	}
	for i := s.search(lo); i < len(s.frags) && CompareEnds(s.frags[i].Start, hi) < 0; i++ {
		seq = max(seq, s.frags[i].Seqs[0])
	}
	return seq
}

// search returns the position of the first fragment that ends after key.
func (s *Set) search(key []byte) int {
	// A nil key is the empty key, not an end without a bound.
	return sort.Search(len(s.frags), func(i int) bool {
		return s.frags[i].End == nil || bytes.Compare(s.frags[i].End, key) > 0
	})
}

func (s *Set) find(key []byte) *Fragment {
	if s == nil {
		return nil
	}
	i := s.search(key)
	if i < len(s.frags) && bytes.Compare(s.frags[i].Start, key) <= 0 {
		return &s.frags[i]
	}
	return nil
}

// Clip appends to dst the tombstones of the set cut to [lo, hi); nil bounds are
// open. There is one per fragment and sequence number, in order.
func (s *Set) Clip(dst []Tombstone, lo, hi []byte) []Tombstone {
	for _, f := range s.Fragments() {
		start, end := f.Start, f.End
		if lo != nil && bytes.Compare(start, lo) < 0 {
			start = lo
		}
		if CompareEnds(end, hi) > 0 {
			end = hi
		}
		if (Tombstone{Start: start, End: end}).Empty() {
			continue
		}
		for _, seq := range f.Seqs {
			dst = append(dst, Tombstone{Start: start, End: end, Seq: seq})
		}
	}
	return dst
}
