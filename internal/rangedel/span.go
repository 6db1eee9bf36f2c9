package rangedel

import "bytes"

// A Span is a range of user keys: [Lo, Hi), where a nil Hi has no bound.
type Span struct{ Lo, Hi []byte }

// Overlaps reports whether some key is in both.
func (s Span) Overlaps(t Span) bool {
	return CompareEnds(s.Lo, t.Hi) < 0 && CompareEnds(t.Lo, s.Hi) < 0
}

// Contains reports whether all keys of t are in s.
func (s Span) Contains(t Span) bool {
	return bytes.Compare(s.Lo, t.Lo) <= 0 && CompareEnds(s.Hi, t.Hi) >= 0
}

// Clip appends the parts in the span of tombstones, which may overlap. The result aliases the bounds of both.
func (s Span) Clip(dst, ts []Tombstone) []Tombstone {
	for _, t := range ts {
		if bytes.Compare(t.Start, s.Lo) < 0 {
			t.Start = s.Lo
		}
		if CompareEnds(s.Hi, t.End) < 0 {
			t.End = s.Hi
		}
		if !t.Empty() {
			dst = append(dst, t)
		}
	}
	return dst
}
