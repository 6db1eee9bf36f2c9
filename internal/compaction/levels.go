package compaction

import (
	"math"

	"github.com/siftkv/siftkv/internal/version"
)

// A leveled store trades space for writes. When keys are overwritten evenly, everything above the last level is a
// second copy of something below. The more of it there is, the more a compaction brings into the last level for what
// it rewrites there. So all levels above the last one together have SpaceAmplification - 1 times its size, and not a
// fixed fraction.
//
// Each level further up has a tenth of the size of the one below it. A level is worth its rewriting only if compactions
// of level 0, which go straight into the base level, would otherwise rewrite much more there than they bring. So levels
// above the base level stay empty (as with RocksDB's dynamic level sizes), and a lookup asks one filter less for each.
//
// Tables have handles of separated values. Where most values are separated, all sizes shrink with the tables' share of
// the store's bytes. A memtable makes a table of that share, and a level of the usual size would hold the values of a
// thousand memtables, of which as many may be hidden below.

// levelFactor is how many times larger a level may be than the one above. The last level is an exception.
const levelFactor = 10

// maxRewritten is the size of the largest base level, in compactions of level 0.
const maxRewritten = 12

// level0Batch estimates the bytes that a compaction of level 0 takes. It stays about the same while the store is open,
// so that the number of levels does.
func (o *Options) level0Batch(share float64) int64 {
	return scaled(min(o.BaseLevelSize, 2*o.MemtableSize), share)
}

func scaled(size int64, share float64) int64 { return int64(float64(size) * share) }

// tableShare returns the tables' share of a store's bytes: 1 without separated values. It takes O(levels).
func tableShare(v *version.Version) float64 {
	live := v.BlobTotals().LiveBytes
	if live == 0 {
		return 1
	}
	tables := 1 + tableBytes(v)
	return float64(tables) / (float64(tables) + float64(live))
}

func tableBytes(v *version.Version) (bytes int64) {
	for n := range v.Levels {
		bytes += v.Levels[n].Bytes
	}
	return bytes
}

// maxAbove returns what the levels above the last may have together, as a part of the last level's size. With
// separated values it is at most the share of them that may be hidden (see BlobSpace).
func (o *Options) maxAbove(share float64) float64 {
	return min(o.SpaceAmplification-1, math.Sqrt(share/(1-share)/3))
}

// LevelTargets returns the base level, and the target size of each level. Levels above the base level have no target:
// tables that are there from when the store was larger go down.
func (o *Options) LevelTargets(v *version.Version) (baseLevel int, targets [NumLevels]int64) {
	largest := int64(0)
	for n := lastLevel; n > 0; n-- {
		largest = max(largest, v.Levels[n].Bytes)
	}
	share := tableShare(v)
	batch, smallest := o.level0Batch(share), scaled(o.BaseLevelSize, share)
	maxBase := maxRewritten * batch
	above := scaled(largest, o.maxAbove(share)) - batch*3/2 // of level 0
	baseLevel = lastLevel
	targets[lastLevel] = max(largest, smallest)
	for size := largest; baseLevel > 1; {
		// A level that has tables stays until the store is a good deal smaller.
		if used := v.Levels[baseLevel-1].Len() > 0; size <= maxBase && !used || size <= maxBase*3/4 {
			break
		}
		if baseLevel--; baseLevel == lastLevel-1 {
			size = above
			if size > maxBase {
				size = size * (levelFactor - 1) / levelFactor // the others take the rest
			}
		} else {
			size /= levelFactor
		}
		targets[baseLevel] = max(size, smallest)
	}
	return baseLevel, targets
}

// UsedLevels is LevelTargets with the highest level that has tables as the base level, if that is above the wanted
// one. It stays the base level until it is drained.
func (o *Options) UsedLevels(v *version.Version) (baseLevel int, targets [NumLevels]int64) {
	baseLevel, targets = o.LevelTargets(v)
	for n := 1; n < baseLevel; n++ {
		if v.Levels[n].Len() > 0 {
			return n, targets
		}
	}
	return baseLevel, targets
}

// level0Score says how badly level 0 of a leveled store needs a compaction: it does from a score of 1. With the last
// level right below, it waits until it has as many bytes as SpaceAmplification allows, or half as many runs again:
// each run costs a lookup one more file.
func (o *Options) level0Score(v *version.Version, baseLevel int) float64 {
	runs, threshold := v.NumRuns(0), o.L0CompactionThreshold
	score := float64(runs) / float64(threshold)
	if runs < threshold || baseLevel < lastLevel {
		return score
	}
	allowed := float64(v.Levels[lastLevel].Bytes) * o.maxAbove(tableShare(v))
	return max(float64(v.Levels[0].Bytes)/max(allowed, 1), float64(runs)/float64(o.maxRunsInLevel0()))
}

// maxRunsInLevel0 returns the number of runs at which level 0 of a leveled store needs a compaction, however small
// they are.
func (o *Options) maxRunsInLevel0() int {
	threshold := o.L0CompactionThreshold
	return max(min(threshold*3/2, o.L0SlowdownThreshold-1), threshold)
}

// filesPerLevel is about how many files a level has, unless they would be too small or too large. With that many, what
// overlaps a compaction at its edges costs little.
const (
	filesPerLevel    = 64
	minFileShare     = 8       // the smallest file is one part in minFileShare of TargetFileSize
	minFileOfHandles = 1 << 20 // the smallest file where most values are separated
)

// MinTargetFileSize is the smallest Options.TargetFileSize that a store may have, and the size of the smallest tables.
const MinTargetFileSize = 16 << 10

// TargetSize returns the size of a new table of a level; 0: all of a merge is one table. Tables of a small level are
// smaller, and those of the last level larger, so that a large store has fewer of them.
func (o *Options) TargetSize(v *version.Version, level int) int64 {
	if level == 0 {
		return 0
	}
	largest := o.TargetFileSize
	if level == lastLevel {
		largest *= 2
	}
	if o.Style != Leveled {
		return largest
	}
	smallest := max(o.TargetFileSize/minFileShare, MinTargetFileSize)
	smallest = min(smallest, max(scaled(smallest, tableShare(v)), minFileOfHandles))
	_, targets := o.LevelTargets(v)
	return min(max(targets[level]/filesPerLevel, smallest), largest)
}

// maxAtOnce returns how many bytes of a level a compaction takes down: an eighth of the level, which makes up for the
// edges, as long as that does not take long.
func (o *Options) maxAtOnce(target int64) int64 { return min(target/8, 8*o.TargetFileSize) }
