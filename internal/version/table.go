package version

import (
	"bytes"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/tablecache"
)

// A Table is a sorted file of the store. The store's mutex guards the marks.
type Table struct {
	tablecache.Entry

	hides atomic.Uint64 // what its range tombstones hide in blob files, and one; 0: not known

	listed
	Compacting  bool // an input of a running compaction
	Quarantined bool // damaged: an input of manual compactions only
}

// NewTable returns a table that no version lists.
func NewTable(m manifest.Table) *Table { return &Table{Entry: tablecache.Entry{Table: m}} }

// Name returns the base name of the table's file.
func (t *Table) Name() string { return manifest.FileName(manifest.FileTable, t.Num) }

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
