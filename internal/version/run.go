package version

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/blockindex"
	"github.com/siftkv/siftkv/internal/manifest"
)

// A Run is tables in key order that share no user key: a lookup asks one of
// them at most. A level below level 0 is one run in a leveled store, and several in a
// tiered one. Runs of a level are ordered by their numbers, which are in the manifest:
// a run with a larger number is newer than all of one with a smaller, wherever they
// share keys. Number 0 is the oldest run, and the only one of a leveled level.
type Run struct {
	Level  int
	Num    uint64
	Tables []*Table
	search blockindex.Index // from a key to the position of the only table
}

// NewRun makes a run of tables in key order, which it keeps.
func NewRun(level int, num uint64, tables []*Table) (*Run, error) {
	r := &Run{Level: level, Num: num, Tables: tables}
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

// Find returns the position of the only table that may hold key: the first whose
// keys are not all before it. It may be len(r.Tables).
func (r *Run) Find(key []byte) int {
	i := r.search.Find(key)
	if i < len(r.Tables) && r.Tables[i].Before(key) {
		i++ // key is the table's exclusive bound, or past the last table
	}
	return i
}

// MayContain reports whether the bounds of a table admit key.
func (r *Run) MayContain(key []byte) bool {
	i := r.Find(key)
	return i < len(r.Tables) && bytes.Compare(r.Tables[i].Smallest, key) <= 0
}

// Overlapping returns the tables that may hold keys of [lo, hi); a nil hi has no
// bound. The result aliases the run.
func (r *Run) Overlapping(lo, hi []byte) []*Table {
	from := r.Find(lo)
	to := from
	for to < len(r.Tables) && r.Tables[to].Overlaps(lo, hi) {
		to++
	}
	return r.Tables[from:to]
}

// A RunID names a run of a level. In level 0 every table is a run, and the number is 0.
type RunID struct {
	Level int
	Run   uint64
}

// A placed table is one with the number of its run.
type placed struct {
	t   *Table
	run uint64
}

// newRuns makes the runs of a level, the newest first. It sorts tables.
func newRuns(level int, tables []placed) ([]*Run, error) {
	slices.SortFunc(tables, func(a, b placed) int {
		return cmp.Or(cmp.Compare(b.run, a.run), bytes.Compare(a.t.Smallest, b.t.Smallest))
	})
	var runs []*Run
	for from := 0; from < len(tables); {
		to := from
		var ts []*Table
		for to < len(tables) && tables[to].run == tables[from].run {
			ts = append(ts, tables[to].t)
			to++
		}
		r, err := NewRun(level, tables[from].run, ts)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
		from = to
	}
	return runs, nil
}

// Overlapping returns the tables that may hold keys of [lo, hi). It aliases the level if
// there is one run.
func (l *Level) Overlapping(lo, hi []byte) []*Table {
	if len(l.Runs) == 1 {
		return l.Runs[0].Overlapping(lo, hi)
	}
	var tables []*Table
	for _, r := range l.Runs {
		tables = append(tables, r.Overlapping(lo, hi)...)
	}
	if len(l.Runs) == 0 { // level 0
		for _, t := range l.Tables {
			if t.Overlaps(lo, hi) {
				tables = append(tables, t)
			}
		}
	}
	return tables
}

// NewestRun returns the number of the newest run; 0 if there is none.
func (l *Level) NewestRun() uint64 {
	if len(l.Runs) == 0 {
		return 0
	}
	return l.Runs[0].Num
}

// NextRun returns the number of a run that is newer than all of the level.
func (l *Level) NextRun() uint64 {
	if len(l.Runs) == 0 {
		return 0
	}
	return l.Runs[0].Num + 1
}

// RunsOver returns the runs that may hold keys of [lo, hi).
func (l *Level) RunsOver(lo, hi []byte) (runs []*Run) {
	for _, r := range l.Runs {
		if len(r.Overlapping(lo, hi)) > 0 {
			runs = append(runs, r)
		}
	}
	return runs
}

// OlderThan returns the runs of a version that are in places below a run of a level,
// and have keys in s: the places are level 0, whose newest table comes first, then the
// runs of level 1 from the newest on, and so forth.
func (v *Version) OlderThan(level int, run uint64, s Span) []*Run {
	var older []*Run
	for n := level; n < manifest.NumLevels; n++ {
		for _, r := range v.Levels[n].RunsOver(s.Lo, s.Hi) {
			if n > level || r.Num < run {
				older = append(older, r)
			}
		}
	}
	return older
}
