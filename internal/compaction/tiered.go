package compaction

import (
	"slices"

	"github.com/siftkv/siftkv/internal/version"
)

// In a tiered store every level has several sorted runs. When a level has Options.RunsPerLevel of them, they are
// merged into one, which is the newest run of the level below. In level 0 every flush is a run, and
// L0CompactionThreshold is their number. So an entry is rewritten about once per level. The number of levels is the
// logarithm of the store's size in flushes, to the base of the runs.
//
// A lazy-leveled store is tiered above, and has one run in the last level (Dayan and Idreos, "Dostoevsky", SIGMOD
// 2018). Runs go straight into the last level, past empty ones, as soon as that rewrites at most RunsPerLevel times
// what they bring. So the tree has as many levels as it needs and no more, whatever the size of the store.
//
// Jobs take whole runs that are neighbours in the order of lookups, down to the output, so that nothing ever gets
// below something older.
//
//   - Level 0 and everything in between goes into the last level, or the runs of a level become a new run of the next
//     one. Newer runs may be added above meanwhile.
//   - If keys are overwritten all the time, what is newer than the oldest run would grow to a multiple of it. When it
//     is more than RunsPerLevel times the size of the oldest run, all runs are merged. That bounds all runs together by
//     RunsPerLevel + 1 times the oldest, level 0 not counted, once compactions have caught up. With keys that are
//     written once this does not happen.
//   - A run that is mostly garbage is merged with all that is older, where that is worth it: see garbageRuns.

// tiered picks a job of a tiered or lazy-leveled store.
func (in *Input) tiered() *Job {
	if j := in.fullLevel(0); j != nil {
		return j
	}
	// A merge of large runs takes long: if there are two threads or more, one is left to keep level 0 short meanwhile.
	if n := in.MaxConcurrentCompactions; n > 1 && in.BusyThreads+1 >= n {
		return nil
	}
	for n := 1; n < NumLevels; n++ {
		if j := in.fullLevel(n); j != nil {
			return j
		}
	}
	for _, candidate := range []func() *Job{in.allRuns, in.blobRuns, in.tombstoneRuns, in.garbageRuns, in.smallBlobs} {
		if j := candidate(); j != nil {
			return j
		}
	}
	return nil
}

// fullLevel takes a level that has all its runs down, or merges those of the last level.
func (in *Input) fullLevel(n int) *Job {
	v := in.Version
	if v.NumRuns(n) < in.RunsAllowed(n) {
		return nil
	}
	lazy := in.Style == LazyLeveled
	if n == lastLevel || lazy && (n == lastLevel-1 || in.reachesLast(n)) {
		if j := in.ifFree(lastLevel, func() *Job { return mergeLevels(v, reasonFull, n, lastLevel) }); j != nil {
			return j
		}
		// The last level is busy, or damaged.
	}
	if n < lastLevel && (n+1 < lastLevel || !lazy) {
		if j := in.ifFree(n+1, func() *Job { return toNextLevel(v, reasonFull, n) }); j != nil {
			return j
		}
	}
	return in.within(n)
}

// reachesLast reports whether a level and those between it and the last have so much that they are worth a merge with
// the last level.
func (in *Input) reachesLast(n int) bool {
	bytes := int64(0)
	for ; n < lastLevel; n++ {
		bytes += in.Version.Levels[n].Bytes
	}
	return in.worthLast(bytes, in.Version.Levels[lastLevel].Bytes)
}

// allRuns merges all runs below level 0 if those above the oldest outweigh it.
func (in *Input) allRuns() *Job {
	runs := in.Version.Below()
	if len(runs) < 2 {
		return nil
	}
	oldest, newer := runs[len(runs)-1].Totals().Bytes, int64(0)
	for _, r := range runs[:len(runs)-1] {
		newer += r.Totals().Bytes
	}
	if !in.outweigh(newer, oldest) {
		return nil
	}
	return in.runsIfFree("the newer runs outweigh the oldest", runs)
}

// within merges the newest runs of a level in their place, when an older run that is damaged keeps them from going
// down, or level 0 has waited for long.
func (in *Input) within(n int) *Job {
	v := in.Version
	if n == 0 {
		if anyQuarantined(v.Level0()) || v.NumRuns(0) >= in.L0SlowdownThreshold {
			return in.withinLevel0()
		}
		return nil
	}
	runs := v.Levels[n].Runs
	damaged := slices.IndexFunc(runs, func(r *version.Run) bool { return anyQuarantined(r.Tables()) })
	if damaged < in.RunsAllowed(n) {
		return nil
	}
	return in.runsIfFree("the level has all its runs, above a damaged one", runs[:damaged])
}

// severalRuns picks a job of a leveled store in which a level has several sorted runs, since the store had another
// style before. Nothing else is done before each level is one run again: jobs of other levels would have to take in
// all those runs too. It reports whether there is such a level.
func (in *Input) severalRuns() (j *Job, several bool) {
	v, damaged := in.Version, false
	for n := 1; n < NumLevels; n++ {
		if len(v.Levels[n].Runs) < 2 {
			continue
		}
		j := in.ifFree(n, func() *Job { return mergeLevels(v, "the level has several runs", n, n) })
		if j != nil {
			return j, true
		}
		several, damaged = true, damaged || anyQuarantined(v.Levels[n].Tables())
	}
	switch {
	case damaged: // that level stays as it is, and so does the shape of the tree
		return in.tiered(), true
	case several:
		return in.within(0), true
	}
	return nil, false
}
