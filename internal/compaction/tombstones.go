package compaction

import (
	"slices"

	"github.com/siftkv/siftkv/internal/version"
)

// tombstones takes tombstone clusters down in a leveled store, where the merge is small enough for what it brings. It
// takes all of level 0, before that has as many files as it may, or one file of a level. In the last level, files have
// tombstone clusters only if a snapshot needed them.
func (in *Input) tombstones(baseLevel int) *Job {
	v := in.Version
	if s := &v.Levels[0].Totals; s.Clustered() && !in.SeenBySnapshot(s.OldestTop) {
		j := merge(v, ReasonTombstones, v.Level0(), 0, baseLevel)
		if version.WorthMerging(s.DenseDeletes, version.EntriesOf(j.Tables())) && !in.conflicts(j) {
			return j
		}
	}
	for n := baseLevel; n < NumLevels; n++ {
		for t := range v.Levels[n].Where(func(s *version.Totals) bool {
			return s.Clustered() && !in.SeenBySnapshot(s.OldestTop)
		}) {
			if t.Compacting {
				continue
			}
			j := merge(v, ReasonTombstones, []*version.Table{t}, n, min(n+1, lastLevel))
			if version.WorthMerging(t.DenseDeletes, version.EntriesOf(j.Tables())) && !in.conflicts(j) {
				return j
			}
		}
	}
	return nil
}

// tombstoneRuns is tombstones of a store whose levels have several runs: it merges level 0, or a run, with all that is
// older, since a tombstone is dropped nowhere else.
func (in *Input) tombstoneRuns() *Job {
	v, older := in.Version, uint64(0)
	var best []*version.Run // the newest run that is worth it, and all that are older
	for i, r := range slices.Backward(v.Below()) {
		s := r.Totals()
		older += s.Entries
		if version.WorthMerging(s.DenseDeletes, older) && !in.SeenBySnapshot(s.LargestSeq) {
			best = v.Below()[i:]
		}
	}
	s := &v.Levels[0].Totals
	if version.WorthMerging(s.DenseDeletes, s.Entries+older) && !in.SeenBySnapshot(s.OldestTop) {
		all := func() *Job { return mergeLevels(v, ReasonTombstones, 0, lastLevel) }
		if j := in.ifFree(lastLevel, all); j != nil {
			return j
		}
	}
	if best == nil {
		return nil
	}
	return in.runsIfFree(ReasonTombstones, best)
}
