package compaction

import (
	"cmp"
	"sort"
)

// Why jobs are picked: the texts of events and logs.
const (
	ReasonHidden     = "separated values may be hidden"
	ReasonGarbage    = "blob GC: blob files have much garbage"
	ReasonDead       = "separated values have expired or were overwritten"
	ReasonTombstones = "there are tombstone clusters"

	reasonSmall  = "blob GC: blob files are small"
	reasonLevel0 = "level 0 has many files"
	reasonFull   = "the level has all its runs"
)

// Pick returns the job that is needed most, or nil. It updates Input.State: the batch of blob GC, and which tables
// were weighed.
func Pick(in *Input) *Job {
	j := in.pick()
	if j == nil {
		return nil
	}
	if j.Candidates == nil {
		j.Candidates = in.State.GC.candidates
	}
	return in.Prepare(j)
}

func (in *Input) pick() *Job {
	if in.OnlyGC() {
		space := in.BlobSpace()
		if j := in.blobGC(&space); j != nil {
			return j
		}
	}
	if in.Style != Leveled {
		return in.tiered()
	}
	return in.leveled()
}

// OnlyGC reports whether all jobs except blob GC must wait, since the disk is full.
func (in *Input) OnlyGC() bool {
	if !in.Disk.Full {
		return false
	}
	space := in.BlobSpace()
	return space.NeedsGC()
}

// blobLevel stands for the blob files among the levels.
const blobLevel = -1

// leveled picks a job of a leveled store. Levels, and blob files among them, have scores, of which the highest comes
// first. Jobs without a score follow.
func (in *Input) leveled() *Job {
	if j, several := in.severalRuns(); several {
		return j
	}
	v := in.Version
	baseLevel, targets := in.UsedLevels(v)
	space := in.BlobSpace()
	waits := false // level 0 needs a job, which conflicts with a running one
	for _, s := range in.scores(&space, baseLevel, &targets) {
		if waits && s.level == baseLevel {
			continue // it would keep level 0 waiting
		}
		if s.score < 1 || s.level > 0 && s.score == 1 {
			break
		}
		var j *Job
		switch s.level {
		case blobLevel:
			if j = in.blobs(&space); j != nil && waits && j.Output == baseLevel {
				j = nil
			}
		case 0:
			j, waits = in.level0(baseLevel)
		default:
			j = in.lowerLevel(&space, s.level, targets[s.level])
		}
		if j != nil {
			return j
		}
	}
	if waits {
		return nil
	}
	if j := in.tombstones(baseLevel); j != nil {
		return j
	}
	if j := in.garbage(baseLevel); j != nil {
		return j
	}
	if j := in.smallBlobs(); j != nil {
		return j
	}
	return in.idle(baseLevel)
}

// A scored level needs a job from a score of 1. The levels below level 0 need one above it.
type scored struct {
	level int
	score float64
}

// scores returns the levels of a leveled store and the blob files, the highest score first.
func (in *Input) scores(space *BlobSpace, baseLevel int, targets *[NumLevels]int64) []scored {
	v := in.Version
	scores := []scored{{0, max(in.level0Score(v, baseLevel), space.hidingScore(v, 0))},
		{blobLevel, in.blobScore(space)}}
	for n := baseLevel; n < lastLevel; n++ {
		score := float64(v.Levels[n].Bytes) / float64(max(targets[n], 1))
		scores = append(scores, scored{n, max(score, space.hidingScore(v, n))})
	}
	sort.SliceStable(scores, func(i, j int) bool { return cmp.Compare(scores[i].score, scores[j].score) > 0 })
	return scores
}
