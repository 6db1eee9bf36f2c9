package kv

import (
	"slices"

	"github.com/siftkv/siftkv/internal/version"
)

const reasonDense = "tombstones lie close together"

// pickDense takes point tombstones that lie close together down, where the merge is small enough
// for what it brings: all of level 0, before it has as many files as it may, or one file of a
// level. In the last level, files have such tombstones only if a snapshot needed them. The caller
// holds d.mu.
func (d *DB) pickDense(v *version.Version, baseLevel int) *runningCompaction {
	if s := &v.Levels[0].Sums; s.Dense() && !d.heldBySnapshots(s.OldestTop) {
		tables := v.Level0()
		span := version.SpanOf(tables)
		c := &runningCompaction{reason: reasonDense, level: 0, output: baseLevel}
		c.inputs[0], c.inputs[baseLevel] = tables, v.Levels[baseLevel].Overlapping(span.Lo, span.Hi)
		if version.WorthMerging(s.DenseDeletes, version.EntriesOf(c.tables())) && !d.conflicts(c) {
			return c
		}
	}
	for n := baseLevel; n < NumLevels; n++ {
		for t := range v.Levels[n].Where(func(s *version.Sums) bool {
			return s.Dense() && !d.heldBySnapshots(s.OldestTop)
		}) {
			if t.Compacting {
				continue
			}
			c := &runningCompaction{reason: reasonDense, level: n, output: min(n+1, lastLevel)}
			if n < lastLevel {
				c.inputs[n+1] = v.Levels[n+1].Overlapping(t.Smallest, t.UpperBound())
			}
			c.inputs[n] = []*version.Table{t}
			if version.WorthMerging(t.DenseDeletes, version.EntriesOf(c.tables())) && !d.conflicts(c) {
				return c
			}
		}
	}
	return nil
}

// pickDenseRuns is pickDense of a store whose levels have several runs: it merges level 0, or
// a run, with all that is older, since a tombstone goes nowhere else.
func (d *DB) pickDenseRuns(v *version.Version) *runningCompaction {
	older := uint64(0)
	var best []*version.Run // the most that is worth it
	for i, r := range slices.Backward(v.Below()) {
		s := r.Sums()
		older += s.Entries
		if version.WorthMerging(s.DenseDeletes, older) && !d.heldBySnapshots(s.LargestSeq) {
			best = v.Below()[i:]
		}
	}
	s := &v.Levels[0].Sums
	if version.WorthMerging(s.DenseDeletes, s.Entries+older) && !d.heldBySnapshots(s.OldestTop) {
		all := func() *runningCompaction { return compactLevels(v, reasonDense, 0, lastLevel) }
		if c := d.ifFree(lastLevel, all); c != nil {
			return c
		}
	}
	if best == nil {
		return nil
	}
	return d.runsIfFree(reasonDense, best)
}
