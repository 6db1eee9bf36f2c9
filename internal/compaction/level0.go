package compaction

import (
	"slices"

	"github.com/siftkv/siftkv/internal/version"
)

// level0 takes all of level 0 down to the base level: its tables overlap, and each one that is left costs a lookup a
// file. It reports whether that waits for a running job, or for a caller that waits to compact. If it has waited until
// writers slow down, level 0 is kept short by merges of its own.
func (in *Input) level0(baseLevel int) (j *Job, waits bool) {
	v := in.Version
	j = merge(v, reasonLevel0, v.Level0(), 0, baseLevel)
	if !in.conflicts(j) {
		return j, false
	}
	if j := in.level0Group(baseLevel); j != nil {
		return j, false
	}
	if anyQuarantined(j.Tables()) {
		return in.withinLevel0(), false
	}
	if v.NumRuns(0) >= in.L0SlowdownThreshold {
		if j := in.withinLevel0(); j != nil {
			return j, false
		}
	}
	return nil, true
}

// level0Group takes a group of tables of level 0 down that share keys with each other and with no other table of it,
// when level 0 cannot go down as a whole. It takes the group of most runs. The group leaves nothing above, so what is
// newer stays above what is older. Groups of few runs wait, except for those that share no keys with the base level:
// these need only be moved.
func (in *Input) level0Group(baseLevel int) (best *Job) {
	v := in.Version
	tables := slices.Clone(v.Level0())
	version.SortTables(tables)
	maxRuns := 0
	for from := 0; from < len(tables); {
		to := from + 1
		s := version.SpanOf(tables[from:to])
		for to < len(tables) && tables[to].Overlaps(s.Lo, s.Hi) {
			to++
			s = version.SpanOf(tables[from:to])
		}
		group := tables[from:to]
		runs := v.RunsOf(group)
		if from = to; best != nil && runs <= maxRuns || len(group) == len(tables) {
			continue
		}
		j := merge(v, reasonLevel0, group, 0, baseLevel)
		worth := runs >= in.L0CompactionThreshold || len(j.Inputs[baseLevel]) == 0
		if worth && !in.conflicts(j) {
			best, maxRuns = j, runs
		}
	}
	return best
}

// withinLevel0 merges neighbouring runs of level 0 into one table of level 0, when a quarantined table or a long job
// keeps them from going down: so the number of runs stays small.
//
// It takes the longest stretch of runs of which none is much larger than what is newer in the stretch: that bounds
// what is rewritten by the logarithm of the number of flushes. If there is none and writers wait, it takes the two
// neighbours that are smallest together. Runs are merged whole, which keeps their order.
func (in *Input) withinLevel0() *Job {
	runs := in.Version.Levels[0].Runs // newest first
	var best []*version.Run
	for i := 0; i < len(runs); {
		n, bytes := 0, int64(0)
		for _, r := range runs[i:] {
			size := r.Totals().Bytes
			if !freeRun(r) || n > 0 && size > 2*bytes {
				break
			}
			n++
			bytes += size
		}
		if n > len(best) {
			best = runs[i : i+n]
		}
		i += max(n, 1)
	}
	if len(best) < 2 && Level0Backlog(in.Version) >= in.L0StopThreshold {
		best = smallestPair(runs)
	}
	if len(best) < 2 {
		return nil
	}
	j := &Job{Kind: Merge, Reason: "level 0 has many files that cannot go down", Level: 0, Output: 0}
	for _, r := range best {
		j.Inputs[0] = append(j.Inputs[0], r.Tables()...)
	}
	return in.unlessInConflict(j)
}

// smallestPair returns the two neighbours that are smallest together, of those that can be merged, or nil.
func smallestPair(runs []*version.Run) (best []*version.Run) {
	smallest := int64(0)
	for i := 1; i < len(runs); i++ {
		pair := runs[i-1 : i+1]
		size := pair[0].Totals().Bytes + pair[1].Totals().Bytes
		if freeRun(pair[0]) && freeRun(pair[1]) && (best == nil || size < smallest) {
			best, smallest = pair, size
		}
	}
	return best
}
