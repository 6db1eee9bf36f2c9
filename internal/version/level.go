package version

import (
	"iter"
	"slices"

	"github.com/siftkv/siftkv/internal/manifest"
)

// A Level is the tables of one level: sorted runs, of which the newest comes first, and within a run in key order.
type Level struct {
	Totals // of the tables; of a level that never had one, the zero value
	Runs   []*Run
}

// setRuns changes a level.
func (l *Level) setRuns(runs []*Run) {
	totals := noTotals()
	for _, r := range runs {
		totals.add(&r.root.totals)
	}
	*l = Level{Totals: totals, Runs: runs}
}

// Len returns the number of tables.
func (l *Level) Len() int { return l.Totals.Tables }

// All goes through the tables, in the order of Tables.
func (l *Level) All() iter.Seq[*Table] { return l.Where(nil) }

// Where goes through the tables of which may is true, in the order of Tables. May is asked of
// what several tables hold together too, and has to be true of that if it is of one of them.
// With n tables and k that are found it takes O(k log n).
func (l *Level) Where(may func(*Totals) bool) iter.Seq[*Table] {
	return func(yield func(*Table) bool) {
		for _, r := range l.Runs {
			if !r.root.walk(may, yield) {
				return
			}
		}
	}
}

// Tables returns the tables: by run, the newest first, and then in key order. To iterate only, call
// All. The caller must not change the result.
func (l *Level) Tables() []*Table {
	return slices.AppendSeq(make([]*Table, 0, l.Len()), l.All())
}

// Overlapping returns the tables that may hold keys of [lo, hi), in the order of Tables.
// The caller must not change the result.
func (l *Level) Overlapping(lo, hi []byte) []*Table {
	if len(l.Runs) == 1 {
		return l.Runs[0].Overlapping(lo, hi)
	}
	var tables []*Table
	for _, r := range l.Runs {
		tables = append(tables, r.Overlapping(lo, hi)...)
	}
	return tables
}

// Overlaps reports whether a table may hold keys of [lo, hi).
func (l *Level) Overlaps(lo, hi []byte) bool {
	return slices.ContainsFunc(l.Runs, func(r *Run) bool { return r.Overlaps(lo, hi) })
}

// BytesOver returns the size of the tables that may hold keys of [lo, hi).
func (l *Level) BytesOver(lo, hi []byte) (bytes int64) {
	for _, r := range l.Runs {
		bytes += r.BytesOver(lo, hi)
	}
	return bytes
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
		if r.Overlaps(lo, hi) {
			runs = append(runs, r)
		}
	}
	return runs
}

// OlderThan returns the runs of a version that are older than a run of a level below level 0, and
// have keys in s: older runs of its level, and all of deeper levels.
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
