package compaction

import "github.com/siftkv/siftkv/internal/version"

// blobScore says how badly blob files need a job, as the scores of levels do. It overtakes those of all levels except a
// full level 0 when writers are about to wait for it. A batch that has begun goes on: nothing is free before its end.
func (in *Input) blobScore(s *BlobSpace) float64 {
	score := 0.0
	if s.NeedsGC() || s.needsRewrite() {
		score = max(1+2*s.Over()/s.Batch, 1)
	}
	if in.State.GC.running() {
		score = max(score, 1.5)
	}
	if s.NeedsMerge() { // merging comes first: more is garbage then, and costs nothing
		score = min(score, s.Hidden/s.MaxHidden)
	}
	return score
}

// blobRuns picks a job for blob files in a store whose levels have several runs. If too much is hidden it merges all
// runs, or those below level 0.
func (in *Input) blobRuns() *Job {
	v, s := in.Version, in.BlobSpace()
	if s.NeedsMerge() {
		if s.hiddenBy(&v.Levels[0]) > s.Hidden/2 {
			all := func() *Job { return mergeLevels(v, ReasonHidden, 0, lastLevel) }
			if j := in.ifFree(lastLevel, all); j != nil {
				return j
			}
		} else if runs := v.Below(); len(runs) > 1 {
			if j := in.runsIfFree(ReasonHidden, runs); j != nil {
				return j
			}
		}
	}
	if in.blobScore(&s) < 1 {
		return nil
	}
	return in.blobs(&s)
}

// blobs rewrites a single table for what is dead in it, which costs little, or else picks a step of blob GC.
func (in *Input) blobs(s *BlobSpace) *Job {
	if s.needsRewrite() {
		if j := in.deadValues(); j != nil {
			return j
		}
	}
	return in.blobGC(s)
}

// deadValues rewrites the table, or the run of level 0, of which most is dead in blob files. An expired value that may
// hide an older one leaves a tombstone.
func (in *Input) deadValues() (best *Job) {
	v, maxDead := in.Version, uint64(0)
	for _, r := range v.Runs {
		for t := range r.Where(func(s *version.Totals) bool {
			return s.ExpiringBlobBytes > 0 && s.FirstExpiry <= in.Now ||
				s.OverwrittenBlobBytes > 0 && s.OldestTop <= in.OldestSnapshot
		}) {
			if dead := t.DroppableBlobBytes(in.Now, in.OldestSnapshot); dead > maxDead {
				j := rewrite(v, Rewrite, ReasonDead, []*version.Table{t})
				if !in.conflicts(j) {
					best, maxDead = j, dead
				}
			}
		}
	}
	return best
}
