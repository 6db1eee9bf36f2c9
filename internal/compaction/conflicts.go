package compaction

import (
	"slices"

	"github.com/siftkv/siftkv/internal/version"
)

// conflicts reports whether a job that no caller asked for must wait: a running job is in its way, it has a quarantined
// input, or a caller waits to compact keys of it. A merge within level 0, which keeps that short, gives way only to a
// caller that waits for nothing but such merges: otherwise its turn would not come while there are writes.
func (in *Input) conflicts(j *Job) bool {
	tables := j.Tables()
	if in.Busy(j) || anyQuarantined(tables) {
		return true
	}
	s := version.SpanOf(tables)
	return slices.ContainsFunc(in.State.Wanted, func(w *version.Span) bool {
		return w.Overlaps(s) && (j.Output > 0 || !in.heldUp(*w))
	})
}

// heldUp reports whether a running job that is not a merge within level 0 keeps a job of a span waiting.
func (in *Input) heldUp(s version.Span) bool {
	return slices.ContainsFunc(in.State.Reserved, func(r *Reservation) bool {
		return r.level > 0 && (in.Style != Leveled || r.span.Overlaps(s))
	})
}

// Busy reports whether a running job has inputs of j, or may write keys of the level and span that j writes. In a
// store whose levels have several runs only one job at a time writes into a level: see ifFree.
func (in *Input) Busy(j *Job) bool {
	tables := j.Tables()
	if slices.ContainsFunc(tables, func(t *version.Table) bool { return t.Compacting }) {
		return true
	}
	s := version.SpanOf(tables)
	return slices.ContainsFunc(in.State.Reserved, func(r *Reservation) bool {
		return r.level == j.Output && (in.Style != Leveled || r.span.Overlaps(s))
	})
}

// unlessInConflict returns the job, or nil if it must wait.
func (in *Input) unlessInConflict(j *Job) *Job {
	if in.conflicts(j) {
		return nil
	}
	return j
}

// ifFree returns the job that make returns, which writes into a level, if it can run. Only one job at a time writes
// into a level, even where jobs share no keys: the order of runs is then that in which jobs began. That is checked
// before make is called, so that a pick during a merge of a large store does not visit all its tables.
func (in *Input) ifFree(output int, make func() *Job) *Job {
	if slices.ContainsFunc(in.State.Reserved, func(r *Reservation) bool { return r.level == output }) {
		return nil
	}
	j := make()
	if len(j.Tables()) == 0 {
		return nil
	}
	return in.unlessInConflict(j)
}

// runsIfFree is ifFree for mergeRuns.
func (in *Input) runsIfFree(reason string, runs []*version.Run) *Job {
	if slices.ContainsFunc(runs, func(r *version.Run) bool { return r.At(0).Compacting }) {
		return nil
	}
	return in.ifFree(runs[len(runs)-1].Level, func() *Job { return mergeRuns(reason, runs) })
}

func anyQuarantined(tables []*version.Table) bool {
	return slices.ContainsFunc(tables, func(t *version.Table) bool { return t.Quarantined })
}

// freeRun reports whether all tables of a run can be merged.
func freeRun(r *version.Run) bool {
	return !slices.ContainsFunc(r.Tables(), func(t *version.Table) bool { return t.Quarantined || t.Compacting })
}

// Level0Backlog returns the number of runs of level 0 that can be compacted. Runs with quarantined tables cannot: they
// do not go away by waiting.
func Level0Backlog(v *version.Version) int {
	n := 0
	for _, r := range v.Levels[0].Runs {
		if !anyQuarantined(r.Tables()) {
			n++
		}
	}
	return n
}

// Level0Over reports whether level 0 has a number of runs for jobs to take.
func Level0Over(v *version.Version, runs int) bool {
	return v.NumRuns(0) >= runs && Level0Backlog(v) >= runs
}
