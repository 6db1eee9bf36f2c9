package kv

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// lastLevel is the level below all others.
const lastLevel = manifest.NumLevels - 1

// A version is an immutable list of the store's tables, by level. Its tables
// stay open, and on disk, while anybody refers to it.
type version struct {
	levels [manifest.NumLevels]level
	runs   []*sortedRun // of all levels, in the order in which a lookup asks them

	withTombstones []*table // tables that hold range tombstones
	tombs          atomic.Pointer[rangedel.Set]

	largestSeq base.SeqNum // of all tables
	lastSeq    base.SeqNum // of all tables that this version and those before it had

	refs int // guarded by DB.mu
}

// A level is the tables of one level. Those of level 0 are newest first. The others
// are in sorted runs, of which the newest comes first, and within a run in key order.
type level struct {
	tables []*table
	runs   []*sortedRun // of these tables; level 0 has none
	bytes  int64
}

// newLevel makes a level of tables, which it keeps and sorts.
func newLevel(n int, tables []placed) (l level, err error) {
	if n == 0 {
		slices.SortFunc(tables, func(a, b placed) int { return compareAge(b.t, a.t) })
	} else if l.runs, err = newRuns(n, tables); err != nil {
		return l, err
	}
	for _, p := range tables {
		l.tables = append(l.tables, p.t)
		l.bytes += p.t.Size
	}
	return l, nil
}

// apply returns the version that e makes of v. Tables that stay, or change their
// level, are shared with v.
func (v *version) apply(e *manifest.Edit) (*version, error) {
	next := &version{}
	moved := v.moved(e)
	for n := range v.levels {
		if !touches(e, n) {
			next.levels[n] = v.levels[n]
			continue
		}
		tables, err := v.levels[n].edited(n, e, moved)
		if err != nil {
			return nil, err
		}
		if next.levels[n], err = newLevel(n, tables); err != nil {
			return nil, err
		}
	}
	for n := range next.levels {
		next.runs = append(next.runs, next.levels[n].runs...)
		for _, t := range next.levels[n].tables {
			next.largestSeq = max(next.largestSeq, t.LargestSeq)
			if t.RangeDeletes > 0 {
				next.withTombstones = append(next.withTombstones, t)
			}
		}
	}
	next.lastSeq = max(v.lastSeq, e.LastSeq, next.largestSeq)
	return next, nil
}

func touches(e *manifest.Edit, n int) bool {
	return slices.ContainsFunc(e.Added, func(a manifest.AddedTable) bool { return a.Level == n }) ||
		slices.ContainsFunc(e.Deleted, func(d manifest.DeletedTable) bool { return d.Level == n })
}

// moved returns the tables that the edit takes from one level and adds to
// another, by number.
func (v *version) moved(e *manifest.Edit) map[uint64]*table {
	moved := map[uint64]*table{}
	for _, d := range e.Deleted {
		for _, t := range v.levels[d.Level].tables {
			if t.Num == d.Num {
				moved[t.Num] = t
			}
		}
	}
	return moved
}

// numRuns returns the number of sorted runs of a level: in level 0 every table is one.
func (v *version) numRuns(n int) int {
	if n == 0 {
		return len(v.levels[0].tables)
	}
	return len(v.levels[n].runs)
}

// edited returns the level's tables after the edit.
func (l *level) edited(n int, e *manifest.Edit, moved map[uint64]*table) ([]placed, error) {
	gone := map[uint64]bool{}
	for _, d := range e.Deleted {
		if d.Level == n {
			gone[d.Num] = true
		}
	}
	var tables []placed
	keep := func(t *table, run uint64) {
		if !gone[t.Num] {
			tables = append(tables, placed{t, run})
		}
		delete(gone, t.Num)
	}
	l.each(keep)
	for num := range gone {
		return nil, fmt.Errorf("level %d: table %d is deleted but not there", n, num)
	}
	for _, a := range e.Added {
		if a.Level != n {
			continue
		}
		t := moved[a.Table.Num]
		if t == nil {
			t = &table{Table: a.Table}
		}
		tables = append(tables, placed{t, a.Run})
	}
	return tables, nil
}

// each calls f for every table, with the number of its run.
func (l *level) each(f func(t *table, run uint64)) {
	if len(l.runs) == 0 { // level 0, where every table is a run
		for _, t := range l.tables {
			f(t, 0)
		}
	}
	for _, r := range l.runs {
		for _, t := range r.tables {
			f(t, r.num)
		}
	}
}

// compareAge orders tables of level 0: the older one first.
func compareAge(a, b *table) int {
	switch {
	case a.LargestSeq != b.LargestSeq:
		return int(min(max(int64(a.LargestSeq)-int64(b.LargestSeq), -1), 1))
	case a.Num < b.Num:
		return -1
	}
	return 1
}

// all calls f for every table.
func (v *version) all(f func(level int, t *table)) {
	for n := range v.levels {
		for _, t := range v.levels[n].tables {
			f(n, t)
		}
	}
}

// describe adds every table to an edit.
func (v *version) describe(e *manifest.Edit) {
	for n := range v.levels {
		v.levels[n].each(func(t *table, run uint64) {
			e.Added = append(e.Added, manifest.AddedTable{Level: n, Run: run, Table: t.Table})
		})
	}
}

// tombstones returns the range tombstones of all tables. The first call opens
// the tables that have some.
func (v *version) tombstones(c *tableCache) (*rangedel.Set, error) {
	if len(v.withTombstones) == 0 {
		return nil, nil
	}
	if set := v.tombs.Load(); set != nil {
		return set, nil
	}
	// Two that come first at once make the same set; a failure is not kept.
	set, err := tombstonesOf(c, v.withTombstones)
	if err == nil {
		v.tombs.Store(set)
	}
	return set, err
}

// tombstonesOver returns the range tombstones that may cover key. It is for versions
// of which a table cannot be read: that is an error only where it may matter.
func (v *version) tombstonesOver(c *tableCache, key []byte) (*rangedel.Set, error) {
	return tombstonesOf(c, slices.DeleteFunc(slices.Clone(v.withTombstones), func(t *table) bool {
		return !t.Contains(key)
	}))
}

func tombstonesOf(c *tableCache, tables []*table) (*rangedel.Set, error) {
	var ts []rangedel.Tombstone
	for _, t := range tables {
		r, err := t.open(c)
		if err != nil {
			return nil, err
		}
		ts = r.Tombstones().Clip(ts, nil, nil)
	}
	return rangedel.NewSet(ts), nil
}

// features returns what the version's tables hold.
func (v *version) features() (f manifest.Features) {
	v.all(func(_ int, t *table) {
		if t.Merges > 0 {
			f |= manifest.FeatureMerge
		}
		if t.Expiring > 0 {
			f |= manifest.FeatureTTL
		}
	})
	return f
}
