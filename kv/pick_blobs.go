package kv

import (
	"math"
	"time"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/version"
)

// blobLevel stands for the blob files among the levels.
const blobLevel = -1

const (
	reasonHidden  = "values may be hidden that lie apart"
	reasonGarbage = "blob files have much garbage"
	reasonDead    = "values that lie apart have expired or were overwritten"
)

// collectionScore says how badly blob files need to be collected, as the scores of levels do. It overtakes
// those of all levels but a full level 0 when writers are about to wait for it. A batch that
// has begun goes on: nothing is free before its end.
func (d *DB) collectionScore(s *compaction.BlobSpace) float64 {
	score := 0.0
	if s.NeedsGC() || s.NeedsRewrite() {
		score = max(1+2*s.Over()/s.Batch, 1)
	}
	if d.compactions.GC.Running() {
		score = max(score, 1.5)
	}
	if s.NeedsMerge() { // merging comes first: more is garbage then, and costs nothing
		score = min(score, s.Hidden/s.MaxHidden)
	}
	return score
}

// pickBlobs is what pickTiered does for blob files: it merges runs if too much is hidden, all or those below level
// 0, or collects.
func (d *DB) pickBlobs(v *version.Version) *runningCompaction {
	s := d.blobSpace(v)
	if s.NeedsMerge() {
		if s.HiddenBy(&v.Levels[0]) > s.Hidden/2 {
			all := func() *runningCompaction { return compactLevels(v, reasonHidden, 0, lastLevel) }
			if c := d.ifFree(lastLevel, all); c != nil {
				return c
			}
		} else if runs := v.Below(); len(runs) > 1 {
			if c := d.runsIfFree(reasonHidden, runs); c != nil {
				return c
			}
		}
	}
	if d.collectionScore(&s) < 1 {
		return nil
	}
	return d.pickForBlobs(v, &s)
}

// pickForBlobs rewrites what is dead in single tables, which costs little, or else collects.
func (d *DB) pickForBlobs(v *version.Version, s *compaction.BlobSpace) *runningCompaction {
	if s.NeedsRewrite() {
		if c := d.pickDead(v); c != nil {
			return c
		}
	}
	return d.pickCollection(v, s)
}

// pickHiding takes down the table of a level below level 0 that hides most for what is rewritten.
func (d *DB) pickHiding(v *version.Version, level int) (best *runningCompaction) {
	below, most := &v.Levels[level+1], 0.0
	for t := range v.Levels[level].Where(func(s *version.Sums) bool { return s.Hides+s.RangeDeletes > 0 }) {
		worth := float64(t.Hides()) / float64(t.Size+below.BytesOver(t.Smallest, t.UpperBound()))
		if worth <= most {
			continue
		}
		c := &runningCompaction{reason: reasonHidden, level: level, output: level + 1}
		c.inputs[level] = []*version.Table{t}
		c.inputs[level+1] = below.Overlapping(t.Smallest, t.UpperBound())
		if !d.conflicts(c) {
			best, most = c, worth
		}
	}
	return best
}

// pickDead takes the table, or of level 0 the run, of which most is dead in blob files. An expired value that may hide
// an older one leaves a tombstone.
func (d *DB) pickDead(v *version.Version) (best *runningCompaction) {
	now, seen, most := d.told.time(), d.compactionInput(v).OldestSnapshot, uint64(0)
	for _, r := range v.Runs {
		for t := range r.Where(func(s *version.Sums) bool {
			return s.ExpiringApart > 0 && s.FirstExpiry <= now || s.OverwrittenApart > 0 && s.OldestTop <= seen
		}) {
			if dead := t.DeadApart(now, seen); dead > most {
				c := collect(v, []*version.Table{t})
				if c.reason, c.collects = reasonDead, false; !d.conflicts(c) {
					best, most = c, dead
				}
			}
		}
	}
	return best
}

// untilDead returns how long to wait, as version.Level.UntilNextWaste does, until so many values have expired that
// it is worth to rewrite tables; 0 if they never are, or are already. The caller holds d.mu.
func (d *DB) untilDead(v *version.Version) time.Duration {
	if v.BlobTotals().Files == 0 {
		return 0
	}
	s, now := d.blobSpace(v), d.told.time()
	dead := func(at uint64) bool { return float64(v.ExpiredApart(at)) > s.MaxHidden }
	if dead(now) || !dead(math.MaxUint64) {
		return 0
	}
	return version.UntilExpiry(func(wait time.Duration) bool { return dead(now + uint64(wait/time.Microsecond)) })
}
