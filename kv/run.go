package kv

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/blockindex"
	"github.com/siftkv/siftkv/internal/manifest"
)

// A sortedRun is tables in key order that share no user key: a lookup asks one of
// them at most. A level below level 0 is one run in a leveled store, and several in a
// tiered one. Runs of a level are ordered by their numbers, which are in the manifest:
// a run with a larger number is newer than all of one with a smaller, wherever they
// share keys. Number 0 is the oldest run, and the only one of a leveled level.
type sortedRun struct {
	level  int
	num    uint64
	tables []*table
	search blockindex.Index // from a key to the position of the only table
}

// newRun makes a run of tables in key order, which it keeps.
func newRun(level int, num uint64, tables []*table) (*sortedRun, error) {
	r := &sortedRun{level: level, num: num, tables: tables}
	var b blockindex.Builder
	for i, t := range tables {
		if i > 0 && !tables[i-1].Before(t.Smallest) {
			return nil, fmt.Errorf("level %d: tables %d and %d overlap at %q", level, tables[i-1].Num, t.Num,
				t.Smallest)
		}
		// The last table may have no upper bound; find does not compare with it.
		if t.Largest == nil && i < len(tables)-1 {
			return nil, fmt.Errorf("level %d: table %d has no upper bound and is not the last", level, t.Num)
		}
		if i < len(tables)-1 {
			b.Add(t.Largest, uint64(i+1))
		}
	}
	search, err := blockindex.Decode(b.Append(nil))
	if err != nil {
		return nil, err
	}
	r.search = search.Guided()
	return r, nil
}

// find returns the position of the only table that may hold key: the first whose
// keys are not all before it. It may be len(r.tables).
func (r *sortedRun) find(key []byte) int {
	i := r.search.Find(key)
	if i < len(r.tables) && r.tables[i].Before(key) {
		i++ // key is the table's exclusive bound, or behind the last table
	}
	return i
}

// mayHold reports whether the bounds of a table admit key.
func (r *sortedRun) mayHold(key []byte) bool {
	i := r.find(key)
	return i < len(r.tables) && bytes.Compare(r.tables[i].Smallest, key) <= 0
}

// overlapping returns the tables that may hold keys of [lo, hi); a nil hi has no
// bound. The result aliases the run.
func (r *sortedRun) overlapping(lo, hi []byte) []*table {
	from := r.find(lo)
	to := from
	for to < len(r.tables) && r.tables[to].Overlaps(lo, hi) {
		to++
	}
	return r.tables[from:to]
}

// A runID names a run of a level. In level 0 every table is a run, and the number is 0.
type runID struct {
	level int
	run   uint64
}

// A placed table is one with the number of its run.
type placed struct {
	t   *table
	run uint64
}

// newRuns makes the runs of a level, the newest first. It sorts tables.
func newRuns(level int, tables []placed) ([]*sortedRun, error) {
	slices.SortFunc(tables, func(a, b placed) int {
		return cmp.Or(cmp.Compare(b.run, a.run), bytes.Compare(a.t.Smallest, b.t.Smallest))
	})
	var runs []*sortedRun
	for from := 0; from < len(tables); {
		to := from
		var ts []*table
		for to < len(tables) && tables[to].run == tables[from].run {
			ts = append(ts, tables[to].t)
			to++
		}
		r, err := newRun(level, tables[from].run, ts)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
		from = to
	}
	return runs, nil
}

// overlapping returns the tables of all runs that may hold keys of [lo, hi). It aliases
// the level if there is one run.
func (l *level) overlapping(lo, hi []byte) []*table {
	if len(l.runs) == 1 {
		return l.runs[0].overlapping(lo, hi)
	}
	var tables []*table
	for _, r := range l.runs {
		tables = append(tables, r.overlapping(lo, hi)...)
	}
	return tables
}

// newestRun returns the number of the newest run; 0 if there is none.
func (l *level) newestRun() uint64 {
	if len(l.runs) == 0 {
		return 0
	}
	return l.runs[0].num
}

// nextRun returns the number of a run that is newer than all of the level.
func (l *level) nextRun() uint64 {
	if len(l.runs) == 0 {
		return 0
	}
	return l.runs[0].num + 1
}

// runsOver returns the runs that may hold keys of [lo, hi).
func (l *level) runsOver(lo, hi []byte) (runs []*sortedRun) {
	for _, r := range l.runs {
		if len(r.overlapping(lo, hi)) > 0 {
			runs = append(runs, r)
		}
	}
	return runs
}

// olderThan returns the runs of a version that are in places below a run of a level,
// and have keys in s: the places are level 0, whose newest table comes first, then the
// runs of level 1 from the newest on, and so forth.
func (v *version) olderThan(level int, run uint64, s span) []*sortedRun {
	var older []*sortedRun
	for n := level; n < manifest.NumLevels; n++ {
		for _, r := range v.levels[n].runsOver(s.lo, s.hi) {
			if n > level || r.num < run {
				older = append(older, r)
			}
		}
	}
	return older
}
