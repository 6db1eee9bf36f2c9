package kv

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/siftkv/siftkv/blockindex"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// NumLevels is the number of levels: level 0, whose files may overlap, and
// levels 1 to 6, each one sorted run.
const NumLevels = manifest.NumLevels

const lastLevel = NumLevels - 1

// A version is an immutable list of the store's tables, by level. Its tables
// stay open, and on disk, while anybody refers to it.
type version struct {
	levels [NumLevels]level

	withTombstones []*table // tables that hold range tombstones
	tombs          atomic.Pointer[rangedel.Set]

	largestSeq base.SeqNum // of all tables
	lastSeq    base.SeqNum // of all tables that this version and those before it had

	refs int // guarded by DB.mu
}

// A level is the tables of one level. Those of level 0 are newest first; those
// of the others are in key order and do not share a user key.
type level struct {
	tables []*table
	bytes  int64
	search blockindex.Index // from a key to the position of the only table; not for level 0
}

// newLevel makes a level of tables, which it keeps.
func newLevel(n int, tables []*table) (level, error) {
	l := level{tables: tables}
	for _, t := range tables {
		l.bytes += t.Size
	}
	if n == 0 || len(tables) == 0 {
		return l, nil
	}
	var b blockindex.Builder
	for i, t := range tables {
		if i > 0 && !tables[i-1].Before(t.Smallest) {
			return l, fmt.Errorf("level %d: tables %d and %d overlap at %q", n, tables[i-1].Num, t.Num, t.Smallest)
		}
		// The last table may have no upper bound; find does not compare with it.
		if t.Largest == nil && i < len(tables)-1 {
			return l, fmt.Errorf("level %d: table %d has no upper bound and is not the last", n, t.Num)
		}
		if i < len(tables)-1 {
			b.Add(t.Largest, uint64(i+1))
		}
	}
	var err error
	l.search, err = blockindex.Decode(b.Append(nil))
	return l, err
}

// find returns the position of the only table that may hold key: the first whose
// keys are not all before it. It may be len(l.tables).
func (l *level) find(key []byte) int {
	i := l.search.Find(key)
	if i < len(l.tables) && l.tables[i].Before(key) {
		i++ // key is the table's exclusive bound, or behind the last table
	}
	return i
}

// overlapping returns the tables that may hold keys of [lo, hi); a nil hi has no
// bound. The result aliases the level.
func (l *level) overlapping(lo, hi []byte) []*table {
	from := l.find(lo)
	to := from
	for to < len(l.tables) && l.tables[to].Overlaps(lo, hi) {
		to++
	}
	return l.tables[from:to]
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

// edited returns the level's tables after the edit.
func (l *level) edited(n int, e *manifest.Edit, moved map[uint64]*table) ([]*table, error) {
	gone := map[uint64]bool{}
	for _, d := range e.Deleted {
		if d.Level == n {
			gone[d.Num] = true
		}
	}
	var tables []*table
	for _, t := range l.tables {
		if !gone[t.Num] {
			tables = append(tables, t)
		}
		delete(gone, t.Num)
	}
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
		tables = append(tables, t)
	}
	slices.SortFunc(tables, func(a, b *table) int {
		if n == 0 {
			return compareAge(b, a)
		}
		return bytes.Compare(a.Smallest, b.Smallest)
	})
	return tables, nil
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

// tombstones returns the range tombstones of all tables. The first call opens
// the tables that have some.
func (v *version) tombstones(d *DB) (*rangedel.Set, error) {
	if len(v.withTombstones) == 0 {
		return nil, nil
	}
	if set := v.tombs.Load(); set != nil {
		return set, nil
	}
	// Two that come first at once make the same set; a failure is not kept.
	var ts []rangedel.Tombstone
	for _, t := range v.withTombstones {
		r, err := d.openTable(t)
		if err != nil {
			return nil, err
		}
		ts = r.Tombstones().Clip(ts, nil, nil)
	}
	set := rangedel.NewSet(ts)
	v.tombs.Store(set)
	return set, nil
}

// tombstonesOver returns the range tombstones that may cover key. It is for versions
// of which a table cannot be read: that is an error only where it may matter.
func (v *version) tombstonesOver(d *DB, key []byte) (*rangedel.Set, error) {
	var ts []rangedel.Tombstone
	for _, t := range v.withTombstones {
		if !t.Contains(key) {
			continue
		}
		r, err := d.openTable(t)
		if err != nil {
			return nil, err
		}
		ts = r.Tombstones().Clip(ts, nil, nil)
	}
	return rangedel.NewSet(ts), nil
}
