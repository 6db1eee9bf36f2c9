package version

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/rangedel"
)

// A Span is a range of user keys: [lo, hi), where a nil hi has no bound.
type Span struct{ Lo, Hi []byte }

// Overlaps reports whether some key is in both.
func (s Span) Overlaps(t Span) bool {
	return rangedel.CompareEnds(s.Lo, t.Hi) < 0 && rangedel.CompareEnds(t.Lo, s.Hi) < 0
}

// Contains reports whether all keys of t are in s.
func (s Span) Contains(t Span) bool {
	return bytes.Compare(s.Lo, t.Lo) <= 0 && rangedel.CompareEnds(s.Hi, t.Hi) >= 0
}

// SpanOf returns the smallest span that holds the tables; there is at least one.
func SpanOf(tables []*Table) Span {
	s := Span{tables[0].Smallest, tables[0].UpperBound()}
	for _, t := range tables[1:] {
		if hi := t.UpperBound(); rangedel.CompareEnds(hi, s.Hi) > 0 {
			s.Hi = hi
		}
		if bytes.Compare(t.Smallest, s.Lo) < 0 {
			s.Lo = t.Smallest
		}
	}
	return s
}
