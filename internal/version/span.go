package version

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/rangedel"
)

// A Span is a range of user keys.
type Span = rangedel.Span

// SpanOf returns the smallest span that holds the tables; there is at least one.
func SpanOf(tables []*Table) Span {
	s := Span{Lo: tables[0].Smallest, Hi: tables[0].UpperBound()}
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
