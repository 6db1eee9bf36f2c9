package version

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// A Version is an immutable list of the store's tables, by level. Its tables
// stay open, and on disk, while anybody refers to it.
type Version struct {
	Levels [manifest.NumLevels]Level
	Runs   []*Run // of all levels, in the order in which a lookup asks them

	WithTombstones []*Table // tables that hold range tombstones
	tombs          atomic.Pointer[rangedel.Set]

	LargestSeq base.SeqNum // of all tables
	LastSeq    base.SeqNum // of all tables that this version and those before it had

	Refs int // guarded by the store's mutex
}

// A Level is the tables of one level. Those of level 0 are newest first. The others
// are in sorted runs, of which the newest comes first, and within a run in key order.
type Level struct {
	Tables []*Table
	Runs   []*Run // of these tables; level 0 has none
	Bytes  int64
}

// newLevel makes a level of tables, which it keeps and sorts.
func newLevel(n int, tables []placed) (l Level, err error) {
	if n == 0 {
		slices.SortFunc(tables, func(a, b placed) int { return compareAge(b.t, a.t) })
	} else if l.Runs, err = newRuns(n, tables); err != nil {
		return l, err
	}
	for _, p := range tables {
		l.Tables = append(l.Tables, p.t)
		l.Bytes += p.t.Size
	}
	return l, nil
}

// Apply returns the version that e makes of v. Tables that stay, or change their
// level, are shared with v, and so are levels that e does not touch.
func (v *Version) Apply(e *manifest.Edit) (*Version, error) {
	deleted := map[manifest.DeletedTable]*Table{}
	for _, d := range e.Deleted {
		deleted[d] = nil
	}
	var kept [manifest.NumLevels][]placed
	for n := range v.Levels {
		if !touches(e, n) {
			continue // an edit costs what it changes
		}
		v.Levels[n].each(func(t *Table, run uint64) {
			id := manifest.DeletedTable{Level: n, Num: t.Num}
			if _, ok := deleted[id]; ok {
				deleted[id] = t
			} else {
				kept[n] = append(kept[n], placed{t, run})
			}
		})
	}
	moved := map[uint64]*Table{}
	for d, t := range deleted {
		if t == nil {
			return nil, fmt.Errorf("level %d: table %d is deleted but not there", d.Level, d.Num)
		}
		moved[d.Num] = t
	}
	for _, a := range e.Added {
		t := moved[a.Table.Num]
		if t == nil {
			t = &Table{Table: a.Table}
		}
		kept[a.Level] = append(kept[a.Level], placed{t, a.Run})
	}
	next := &Version{Levels: v.Levels}
	for n := range next.Levels {
		if err := next.setLevel(n, kept[n], touches(e, n)); err != nil {
			return nil, err
		}
	}
	next.LastSeq = max(v.LastSeq, e.LastSeq, next.LargestSeq)
	return next, nil
}

// setLevel makes a level of tables, if it has changed, and takes in what it has.
func (v *Version) setLevel(n int, tables []placed, changed bool) (err error) {
	if changed {
		if v.Levels[n], err = newLevel(n, tables); err != nil {
			return err
		}
	}
	v.Runs = append(v.Runs, v.Levels[n].Runs...)
	for _, t := range v.Levels[n].Tables {
		v.LargestSeq = max(v.LargestSeq, t.LargestSeq)
		if t.RangeDeletes > 0 {
			v.WithTombstones = append(v.WithTombstones, t)
		}
	}
	return nil
}

func touches(e *manifest.Edit, n int) bool {
	return slices.ContainsFunc(e.Added, func(a manifest.AddedTable) bool { return a.Level == n }) ||
		slices.ContainsFunc(e.Deleted, func(d manifest.DeletedTable) bool { return d.Level == n })
}

// NumRuns returns the number of sorted runs of a level: in level 0 every table is one.
func (v *Version) NumRuns(n int) int {
	if n == 0 {
		return len(v.Levels[0].Tables)
	}
	return len(v.Levels[n].Runs)
}

// each calls f for every table, with the number of its run.
func (l *Level) each(f func(t *Table, run uint64)) {
	if len(l.Runs) == 0 { // level 0, where every table is a run
		for _, t := range l.Tables {
			f(t, 0)
		}
	}
	for _, r := range l.Runs {
		for _, t := range r.Tables {
			f(t, r.Num)
		}
	}
}

// compareAge orders tables of level 0: the older one first. The files of one ingest share a
// sequence number and no keys; the one that was merged with what is below them has older
// entries too, perhaps of keys that the others have, and so it is the oldest of them.
func compareAge(a, b *Table) int {
	return cmp.Or(cmp.Compare(a.LargestSeq, b.LargestSeq), cmp.Compare(a.SmallestSeq, b.SmallestSeq),
		cmp.Compare(a.Num, b.Num))
}

// All calls f for every table.
func (v *Version) All(f func(level int, t *Table)) {
	for n := range v.Levels {
		for _, t := range v.Levels[n].Tables {
			f(n, t)
		}
	}
}

// Describe adds every table to an edit.
func (v *Version) Describe(e *manifest.Edit) {
	for n := range v.Levels {
		v.Levels[n].each(func(t *Table, run uint64) {
			e.Added = append(e.Added, manifest.AddedTable{Level: n, Run: run, Table: t.Table})
		})
	}
}

// Tombstones returns the range tombstones of all tables. The first call opens
// the tables that have some.
func (v *Version) Tombstones(c *TableCache) (*rangedel.Set, error) {
	if len(v.WithTombstones) == 0 {
		return nil, nil
	}
	if set := v.tombs.Load(); set != nil {
		return set, nil
	}
	// Two that come first at once make the same set; a failure is not kept.
	set, err := tombstonesOf(c, v.WithTombstones)
	if err == nil {
		v.tombs.Store(set)
	}
	return set, err
}

// TombstonesOver returns the range tombstones that may cover key. It is for versions
// of which a table cannot be read: that is an error only where it may matter.
func (v *Version) TombstonesOver(c *TableCache, key []byte) (*rangedel.Set, error) {
	return tombstonesOf(c, slices.DeleteFunc(slices.Clone(v.WithTombstones), func(t *Table) bool {
		return !t.Contains(key)
	}))
}

func tombstonesOf(c *TableCache, tables []*Table) (*rangedel.Set, error) {
	var ts []rangedel.Tombstone
	for _, t := range tables {
		r, err := t.Open(c)
		if err != nil {
			return nil, err
		}
		ts = r.Tombstones().Clip(ts, nil, nil)
	}
	return rangedel.NewSet(ts), nil
}

// Features returns what the version's tables hold.
func (v *Version) Features() (f manifest.Features) {
	v.All(func(_ int, t *Table) {
		if t.Merges > 0 {
			f |= manifest.FeatureMerge
		}
		if t.Expiring > 0 {
			f |= manifest.FeatureTTL
		}
	})
	return f
}
