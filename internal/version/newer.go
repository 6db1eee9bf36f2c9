package version

import "github.com/siftkv/siftkv/internal/base"

// WrittenAfter returns the tables that have entries newer than write seq. With n tables, of which
// it returns k, it takes O(k log n). It looks at sequence numbers alone, since every commit of a
// transaction calls it. Where makes the sums of each table that it visits, and takes three times as
// long with a hundred tables.
func (v *Version) WrittenAfter(seq base.SeqNum) (tables []*Table) {
	for _, r := range v.Runs {
		tables = r.root.writtenAfter(seq, tables)
	}
	return tables
}

// writtenAfter appends the tables of a part of a run.
func (n *node) writtenAfter(seq base.SeqNum, tables []*Table) []*Table {
	if n.sums.LargestSeq <= seq {
		return tables
	}
	for _, k := range n.kids {
		tables = k.writtenAfter(seq, tables)
	}
	for _, t := range n.tables {
		if t.LargestSeq > seq {
			tables = append(tables, t)
		}
	}
	return tables
}
