// Package readset remembers what a transaction has read: keys, exactly, and ranges of
// keys, within a bound on memory. It knows nothing of stores.
package readset

import (
	"bytes"
	"slices"

	"github.com/siftkv/siftkv/internal/rangedel"
)

// A Set is what was read. The zero Set is empty.
type Set struct {
	// Keys are the keys that were looked up.
	Keys map[string]struct{}
	// Spans are the ranges that were read; after Merge they are sorted and disjoint.
	Spans []rangedel.Span

	merged              int // the first merged spans are sorted and disjoint
	keyBytes, spanBytes int
}

// overhead is what a key or a span takes in addition to its bytes.
const overhead = 48

// Empty reports whether nothing was read.
func (s *Set) Empty() bool { return len(s.Keys)+len(s.Spans) == 0 }

// Size returns what the set takes in memory, in bytes.
func (s *Set) Size() int { return s.keyBytes + s.spanBytes }

// AddKey notes that a key was looked up.
func (s *Set) AddKey(key []byte) {
	if _, ok := s.Keys[string(key)]; ok {
		return
	}
	if s.Keys == nil {
		s.Keys = map[string]struct{}{}
	}
	s.keyBytes += overhead + len(key)
	s.Keys[string(key)] = struct{}{}
}

// AddSpan notes that all keys of a span were looked for. It copies the bounds.
func (s *Set) AddSpan(t rangedel.Span) {
	if t.Hi != nil && bytes.Compare(t.Lo, t.Hi) >= 0 {
		return
	}
	if n := len(s.Spans); n > 0 && s.Spans[n-1].Contains(t) {
		return
	}
	t = rangedel.Span{Lo: append([]byte{}, t.Lo...), Hi: bytes.Clone(t.Hi)}
	s.Spans = append(s.Spans, t)
	s.spanBytes += sizeOf(t)
	if len(s.Spans) > 2*s.merged+16 {
		s.Merge()
	}
}

// Merge sorts the spans and joins those that meet. AddSpan does it each time their number
// has doubled: O(log n) for each.
func (s *Set) Merge() {
	slices.SortFunc(s.Spans, func(a, b rangedel.Span) int { return bytes.Compare(a.Lo, b.Lo) })
	out := s.Spans[:0]
	for _, t := range s.Spans {
		if n := len(out); n == 0 || rangedel.CompareEnds(out[n-1].Hi, t.Lo) < 0 {
			out = append(out, t)
		} else if rangedel.CompareEnds(t.Hi, out[n-1].Hi) > 0 {
			out[n-1].Hi = t.Hi
		}
	}
	clear(s.Spans[len(out):])
	s.Spans, s.merged, s.spanBytes = out, len(out), 0
	for _, t := range out {
		s.spanBytes += sizeOf(t)
	}
}

// sizeOf returns what a span takes in memory.
func sizeOf(t rangedel.Span) int { return overhead + len(t.Lo) + len(t.Hi) }
