package kv

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/rangedel"
)

// A span is a range of user keys: [lo, hi), where a nil hi has no bound.
type span struct{ lo, hi []byte }

func (s span) overlaps(t span) bool {
	return rangedel.CompareEnds(s.lo, t.hi) < 0 && rangedel.CompareEnds(t.lo, s.hi) < 0
}

// contains reports whether all keys of t are in s.
func (s span) contains(t span) bool {
	return bytes.Compare(s.lo, t.lo) <= 0 && rangedel.CompareEnds(s.hi, t.hi) >= 0
}

// spanOf returns the smallest span that holds the tables; there is at least one.
func spanOf(tables []*table) span {
	s := span{tables[0].Smallest, tables[0].UpperBound()}
	for _, t := range tables[1:] {
		if hi := t.UpperBound(); rangedel.CompareEnds(hi, s.hi) > 0 {
			s.hi = hi
		}
		if bytes.Compare(t.Smallest, s.lo) < 0 {
			s.lo = t.Smallest
		}
	}
	return s
}
