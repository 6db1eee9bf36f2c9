package kv

import (
	"slices"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/version"
)

// A tiered store collects sorted runs in every level: when a level has as many as
// Options.RunsPerLevel, they are merged into one, which is the newest run of the level
// below (level 0, of which every flush is a run, has L0CompactionThreshold). So an entry
// is rewritten about once per level, and the number of levels is the logarithm of the
// store's size in flushes, to the base of the runs.
//
// A lazy-leveled store is tiered above, and has one run in the last level (Dayan and
// Idreos, "Dostoevsky", SIGMOD 2018). Runs go straight into the last level, past
// empty ones, as soon as that rewrites no more than RunsPerLevel times what they bring:
// the tree has as many levels as it needs and no more, whatever the size of the store.
//
// What is picked are whole runs that are neighbours in the order of lookups, down to
// the place where they go, so that nothing is ever put below something older.
//
//   - Level 0 and everything in between goes into the last level, or the runs of a
//     level become a new run of the next one. Newer runs may come above meanwhile.
//   - What is newer than the oldest run would, if keys are overwritten all the time,
//     grow to a multiple of it: beyond RunsPerLevel times its size, all runs are merged.
//     That bounds all runs together by RunsPerLevel + 1 times the oldest, once compactions
//     have caught up and level 0 aside. With keys that are written once it never comes to that.
//   - A run that is mostly waste is merged with all that is older, where that is worth it:
//     see pickWasteRuns.

// pickTiered is pickCompaction of tiered and lazy-leveled stores. The caller holds d.mu.
func (d *DB) pickTiered() *runningCompaction {
	v := d.current
	if c := d.pickLevel(v, 0); c != nil {
		return c
	}
	// A merge of large runs takes long: if there are two threads or more, one is
	// left to keep level 0 short meanwhile.
	if n := d.opts.MaxConcurrentCompactions; n > 1 && d.compactions.busyThreads()+1 >= n {
		return nil
	}
	for n := 1; n < NumLevels; n++ {
		if c := d.pickLevel(v, n); c != nil {
			return c
		}
	}
	if c := d.pickAllRuns(v); c != nil {
		return c
	}
	if c := d.pickBlobs(v); c != nil {
		return c
	}
	if c := d.pickDenseRuns(v); c != nil {
		return c
	}
	if c := d.pickWasteRuns(v); c != nil {
		return c
	}
	return d.pickSmall(v)
}

// pickLevel takes a level that has all its runs down, or merges those of the last.
func (d *DB) pickLevel(v *version.Version, n int) *runningCompaction {
	if v.NumRuns(n) < d.opts.compaction().RunsAllowed(n) {
		return nil
	}
	const reason = "the level has all its runs"
	lazy := d.opts.Compaction == LazyLeveled
	if n == lastLevel || lazy && (n == lastLevel-1 || d.reachesLast(v, n)) {
		all := func() *runningCompaction { return compactLevels(v, reason, n, lastLevel) }
		if c := d.ifFree(lastLevel, all); c != nil {
			return c
		}
		// The last level is busy, or damaged.
	}
	if n < lastLevel && (n+1 < lastLevel || !lazy) {
		if c := d.ifFree(n+1, func() *runningCompaction { return toNextLevel(v, reason, n) }); c != nil {
			return c
		}
	}
	return d.pickWithin(v, n)
}

// reachesLast reports whether what is in a level and below, but above the last level, is
// so much that merging it into the last level is worth it.
func (d *DB) reachesLast(v *version.Version, n int) bool {
	bytes := int64(0)
	for ; n < lastLevel; n++ {
		bytes += v.Levels[n].Bytes
	}
	return d.opts.compaction().WorthLast(bytes, v.Levels[lastLevel].Bytes)
}

// pickAllRuns merges all runs below level 0 if those above the oldest outweigh it.
func (d *DB) pickAllRuns(v *version.Version) *runningCompaction {
	runs := v.Below()
	if len(runs) < 2 {
		return nil
	}
	oldest, newer := runs[len(runs)-1].Sums().Bytes, int64(0)
	for _, r := range runs[:len(runs)-1] {
		newer += r.Sums().Bytes
	}
	if !d.opts.compaction().Outweigh(newer, oldest) {
		return nil
	}
	return d.runsIfFree("the newer runs outweigh the oldest", runs)
}

// pickWithin merges the newest runs of a level in their place, when an older one that is
// damaged keeps them from going down, or level 0 has waited for long.
func (d *DB) pickWithin(v *version.Version, n int) *runningCompaction {
	if n == 0 {
		if anyQuarantined(v.Level0()) || v.NumRuns(0) >= d.opts.L0SlowdownThreshold {
			return d.pickWithinLevel0(v)
		}
		return nil
	}
	runs := v.Levels[n].Runs
	damaged := slices.IndexFunc(runs, func(r *version.Run) bool { return anyQuarantined(r.Tables()) })
	if damaged < d.opts.compaction().RunsAllowed(n) {
		return nil
	}
	return d.runsIfFree("the level has all its runs, above a damaged one", runs[:damaged])
}

// pickSeveralRuns is pickCompaction of a leveled store in which a level has several sorted
// runs, since it was opened with another kind of compaction before. Nothing else is done
// before each level is one run again: what would share levels with it would have to take
// in all of them too. It reports whether there is such a level. The caller holds d.mu.
func (d *DB) pickSeveralRuns(v *version.Version) (c *runningCompaction, several bool) {
	damaged := false
	for n := 1; n < NumLevels; n++ {
		if len(v.Levels[n].Runs) < 2 {
			continue
		}
		c := d.ifFree(n, func() *runningCompaction { return compactLevels(v, "the level has several runs", n, n) })
		if c != nil {
			return c, true
		}
		several, damaged = true, damaged || anyQuarantined(v.Levels[n].Tables())
	}
	switch {
	case damaged: // that level stays as it is, and so does the kind of tree
		return d.pickTiered(), true
	case several:
		return d.pickWithin(v, 0), true
	}
	return nil, false
}

// pickWasteRuns merges a run that is mostly waste, and all that are older, or takes level 0
// down for what has expired there.
func (d *DB) pickWasteRuns(v *version.Version) *runningCompaction {
	const reason = "a run is mostly tombstones, or values that expired or were overwritten"
	now := d.told.time()
	if v.ExpiredInLevel0(now) {
		if c := d.ifFree(1, func() *runningCompaction { return toNextLevel(v, reason, 0) }); c != nil {
			return c
		}
	}
	for i, r := range v.Below() {
		level := v.WasteLevel(i)
		if !r.MostlyWaste(level, now) || level == lastLevel && d.heldBySnapshots(r.Sums().LargestSeq) {
			continue
		}
		if c := d.runsIfFree(reason, v.Below()[i:]); c != nil && version.WorthRewriting(r.Tables(), c.tables()) {
			return c
		}
	}
	return nil
}

// compactLevels returns a compaction of everything from one level to another into one run of
// the latter.
func compactLevels(v *version.Version, reason string, from, to int) *runningCompaction {
	c := &runningCompaction{reason: reason, level: from, output: to, wholeRuns: true}
	for n := from; n <= to; n++ {
		c.inputs[n] = v.Levels[n].Tables()
	}
	return c
}

// toNextLevel returns a compaction of all runs of a level into a new one of the next.
func toNextLevel(v *version.Version, reason string, n int) *runningCompaction {
	c := compactLevels(v, reason, n, n)
	c.output, c.run = n+1, v.Levels[n+1].NextRun()
	return c
}

// compactRuns returns a compaction of runs, neighbours and the newest first, into one in
// place of the oldest.
func compactRuns(reason string, runs []*version.Run) *runningCompaction {
	oldest := runs[len(runs)-1]
	c := &runningCompaction{reason: reason, level: runs[0].Level, output: oldest.Level, run: oldest.Num,
		wholeRuns: true}
	for _, r := range runs {
		c.inputs[r.Level] = append(c.inputs[r.Level], r.Tables()...)
	}
	return c
}

// ifFree returns the compaction into a level that inputs collects if it can run. Only one at a
// time writes into a level, even where they share no keys: the order of runs is then that in
// which they began. That is asked first, so that a pick beside a running merge of a large store
// does not go through all its tables. The caller holds d.mu.
func (d *DB) ifFree(output int, inputs func() *runningCompaction) *runningCompaction {
	if slices.ContainsFunc(d.compactions.Reserved, func(r *compaction.Reservation) bool { return r.Level == output }) {
		return nil
	}
	c := inputs()
	if len(c.tables()) == 0 || d.conflicts(c) {
		return nil
	}
	return c
}

// runsIfFree is ifFree for compactRuns.
func (d *DB) runsIfFree(reason string, runs []*version.Run) *runningCompaction {
	if slices.ContainsFunc(runs, func(r *version.Run) bool { return r.At(0).Compacting }) {
		return nil
	}
	return d.ifFree(runs[len(runs)-1].Level, func() *runningCompaction { return compactRuns(reason, runs) })
}
