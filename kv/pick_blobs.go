package kv

import "github.com/siftkv/siftkv/internal/version"

// blobLevel stands for the blob files among the levels.
const blobLevel = -1

const reasonHidden = "values may be hidden that lie apart"

// collectionScore says how badly blob files need to be collected, as the scores of levels do. It overtakes
// those of all levels but a full level 0 when writers are about to wait for it. A batch that
// has begun goes on: nothing is free before its end.
func (d *DB) collectionScore(s *blobSpace) float64 {
	score := 0.0
	if s.collects() {
		score = 1 + 2*s.over()/s.batch
	}
	if d.collecting() {
		score = max(score, 1.5)
	}
	return score
}

// hidingScore says how badly a level has to go down because it may hide values below: of those above the oldest run,
// the one that may hide most.
func (d *DB) hidingScore(v *version.Version, s *blobSpace, level int) float64 {
	if !s.hides() || s.hidingLevel(v) != level {
		return 0
	}
	return s.hidden / s.mostHidden
}

// pickBlobs is what pickTiered does for blob files: it merges runs if too much may be hidden, all or those below level
// 0, or collects.
func (d *DB) pickBlobs(v *version.Version) *compaction {
	s := d.blobSpace(v)
	if s.hides() {
		if s.hiding(&v.Levels[0]) > s.hidden/2 {
			all := func() *compaction { return compactLevels(v, reasonHidden, 0, lastLevel) }
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
	return d.pickCollection(v, &s)
}
