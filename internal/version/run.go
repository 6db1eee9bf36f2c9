package version

import (
	"bytes"
	"cmp"
	"iter"
	"sort"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// A Run is tables in key order that share no user key: a lookup asks one of them at most. A level below level 0 is one
// run in a leveled store, and several in a tiered one. Runs of a level are ordered by their numbers, which are in the
// manifest: a run with a larger number is newer than all of one with a smaller, wherever they share keys. Number 0 is
// the oldest run, and the only one of a leveled level.
//
// In level 0 a run is what one flush has written, in one table or several, or one merge, or a table that was ingested.
// These runs are ordered by age (compareAge). Their numbers only identify them: a run has that of its first table.
type Run struct {
	Level int
	Num   uint64
	root  *node

	// WithTombstones is those of the tables that have range tombstones; nil if none has.
	WithTombstones *Run
}

// A RunID names a run of a level.
type RunID struct {
	Level int
	Run   uint64
}

// runOf returns the run of an added table. In level 0 one without a number is a run.
func runOf(a *manifest.AddedTable) RunID {
	if a.Level == 0 && a.Run == 0 {
		return RunID{Run: a.Table.Num}
	}
	return RunID{a.Level, a.Run}
}

// ID returns the run's name.
func (r *Run) ID() RunID { return RunID{r.Level, r.Num} }

// NewRun makes a run of tables in key order, of which there is at least one.
func NewRun(level int, num uint64, tables []*Table) (*Run, error) {
	return (&Run{Level: level, Num: num}).edited(change{added: tables})
}

// SortTables sorts tables by their smallest keys.
func SortTables(tables []*Table) {
	sort.Slice(tables, func(i, j int) bool { return bytes.Compare(tables[i].Smallest, tables[j].Smallest) < 0 })
}

// edited returns the run that c makes of r; nil if it has no tables.
func (r *Run) edited(c change) (*Run, error) {
	SortTables(c.gone)
	SortTables(c.added)
	next, err := r.with(c)
	if next == nil || err != nil {
		return nil, err
	}
	if next.WithTombstones = r.WithTombstones; next.WithTombstones == nil {
		next.WithTombstones = &Run{Level: r.Level, Num: r.Num}
	}
	next.WithTombstones, err = next.WithTombstones.with(change{withTombstones(c.gone), withTombstones(c.added)})
	return next, err
}

// with returns the run that c makes of r, without what it says of tombstones.
func (r *Run) with(c change) (*Run, error) {
	root, err := (&treeEdit{level: r.Level, most: maxNode}).apply(r.root, c)
	if root == nil || err != nil {
		return nil, err
	}
	return &Run{Level: r.Level, Num: r.Num, root: root}, nil
}

// compareAge orders runs of level 0: the older one first. The files of one ingest share a
// sequence number and no keys. The one that was merged with what is below them has older
// entries too, perhaps of keys of the others. So it is the oldest of them.
func compareAge(a, b *Run) int {
	if c := cmp.Compare(a.Totals().LargestSeq, b.Totals().LargestSeq); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.smallestSeq(), b.smallestSeq()), cmp.Compare(a.Num, b.Num))
}

func (r *Run) smallestSeq() base.SeqNum {
	smallest := base.MaxSeqNum
	for t := range r.All() {
		smallest = min(smallest, t.SmallestSeq)
	}
	return smallest
}

// Len returns the number of tables.
func (r *Run) Len() int { return r.root.totals.Tables }

// Totals returns what the tables hold. The caller must not change the result.
func (r *Run) Totals() *Totals { return &r.root.totals }

// At returns the table at a position, from 0 to Len-1.
func (r *Run) At(i int) *Table { return r.root.at(i) }

// Last returns the table with the largest keys.
func (r *Run) Last() *Table { return r.root.last() }

// All goes through the tables in key order.
func (r *Run) All() iter.Seq[*Table] { return r.Where(nil) }

// Where is Level.Where for one run.
func (r *Run) Where(may func(*Totals) bool) iter.Seq[*Table] {
	return func(yield func(*Table) bool) { r.root.walk(may, yield) }
}

// Tables returns the tables in key order. To iterate only, call All. The caller must not change the result.
func (r *Run) Tables() []*Table { return r.Between(0, r.Len()) }

// Between returns the tables from a position up to another. The caller must not change the result.
func (r *Run) Between(from, to int) []*Table { return r.root.between(from, to) }

// Find returns the only table that may hold key, the first that does not end before it,
// and its position. Past the last table they are nil and Len.
func (r *Run) Find(key []byte) (int, *Table) { return r.root.find(key) }

// MayContain reports whether the bounds of a table admit key.
func (r *Run) MayContain(key []byte) bool {
	_, t := r.Find(key)
	return t != nil && bytes.Compare(t.Smallest, key) <= 0
}

// Overlaps reports whether a table may hold keys of [lo, hi); a nil hi has no bound.
func (r *Run) Overlaps(lo, hi []byte) bool {
	_, t := r.Find(lo)
	return t != nil && t.Overlaps(lo, hi)
}

// over returns the positions of the tables that may hold keys of [lo, hi): of the first, and of the one after the last.
func (r *Run) over(lo, hi []byte) (from, to int) {
	from, first := r.Find(lo)
	if first == nil || !first.Overlaps(lo, hi) {
		return from, from
	}
	if hi == nil {
		return from, r.Len()
	}
	to, last := r.Find(hi)
	if last != nil && rangedel.CompareEnds(last.Smallest, hi) < 0 {
		to++
	}
	return from, to
}

// Overlapping returns the tables that may hold keys of [lo, hi); a nil hi has no
// bound. The caller must not change the result.
func (r *Run) Overlapping(lo, hi []byte) []*Table { return r.root.between(r.over(lo, hi)) }

// BytesOver returns the size of the tables that may hold keys of [lo, hi).
func (r *Run) BytesOver(lo, hi []byte) int64 {
	from, to := r.over(lo, hi)
	return r.root.bytesUpTo(to) - r.root.bytesUpTo(from)
}
