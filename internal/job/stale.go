package job

import (
	"errors"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/version"
)

// Finished returns the tables of the last level with keys of [lo, end) that rewriting would not change. They have the
// filters that new files get. They have no tombstones, operands, values that may have expired, or versions of a key
// under newer ones. It opens those of which the manifest does not say that they have something to lose.
func (e *Env) Finished(v *version.Version, lo, end []byte) (map[*version.Table]bool, error) {
	last := compaction.NumLevels - 1
	want := e.Filters.For(filterbudget.Tables{Version: v, To: version.RunID{Level: last}})
	finished := map[*version.Table]bool{}
	for _, t := range v.Levels[last].Overlapping(lo, end) {
		if t.Deletes+t.RangeDeletes+t.Expiring+t.Overwritten > 0 || t.Merges > 0 && e.Merge != nil {
			continue
		}
		r, err := t.Open(e.Tables)
		if err != nil {
			return nil, err
		}
		finished[t] = !e.Filters.Differs(r.Properties(), want)
	}
	return finished, nil
}

// A Group is tables of a run that are rewritten together: one table, or a run of level 0, whose age is that of all its
// tables.
type Group struct {
	Run    version.RunID
	Tables []*version.Table
}

// StaleFilters returns the tables of a version whose filters are not those that the plan gives to new ones, the
// youngest first. It leaves damaged tables out.
func (e *Env) StaleFilters(v *version.Version) (groups []Group, err error) {
	for _, run := range v.Runs {
		stale := false
		for t := range run.All() {
			r, err := t.Open(e.Tables)
			if err != nil {
				if errors.Is(err, base.ErrCorruption) {
					continue
				}
				return nil, err
			}
			one := []*version.Table{t}
			want := e.Filters.Fair(filterbudget.Tables{Version: v, To: run.ID(), Entries: t.Entries, Inputs: one})
			if t.Entries == 0 || !e.Filters.Stale(r.Properties(), want) {
				continue
			}
			if stale = true; run.Level > 0 {
				groups = append(groups, Group{run.ID(), one})
			}
		}
		if stale && run.Level == 0 {
			groups = append(groups, Group{run.ID(), run.Tables()})
		}
	}
	return groups, nil
}
