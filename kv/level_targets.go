package kv

import (
	"math"

	"github.com/siftkv/siftkv/internal/version"
)

// A leveled store trades space for writes. Everything above the last level is, when keys
// are overwritten evenly, a second copy of something below. The more there may be of it, the
// more a compaction brings into the last level for what it rewrites there. So all levels
// above the last one together have SpaceAmplification - 1 times its size, and not a fixed
// fraction.
//
// Each level further up has a tenth of the one below it. A level is worth its rewriting only
// once level 0, which is compacted straight into the base level, would have much more
// rewritten there than it brings: levels above the base level stay empty (the idea of
// RocksDB's dynamic level sizes), and a lookup has one filter less to ask for each.

// Of values that lie apart tables have handles. Where most values do, all sizes shrink with the share that
// tables have of a store: a memtable makes that much of a table, and a level of the usual size would hold
// a thousand memtables' worth of values, of which as many may be hidden below.

// levelFactor is how many times larger a level may be than the one above, the last level aside.
const levelFactor = 10

// maxRewritten is the size, in compactions of level 0, up to which a level is the base level.
const maxRewritten = 12

// level0Batch estimates the bytes that a compaction of level 0 takes. It stays about the same as
// long as the store is open, so that the number of levels does.
func (d *DB) level0Batch(share float64) int64 {
	return scaled(min(d.opts.BaseLevelSize, 2*d.opts.MemtableSize), share)
}

// scaled returns the share of a size.
func scaled(size int64, share float64) int64 { return int64(float64(size) * share) }

// tableShare returns the share of a store's bytes that are in tables: 1 if no values lie apart. It takes O(levels).
func tableShare(v *version.Version) float64 {
	live := v.BlobTotals().LiveBytes
	if live == 0 {
		return 1
	}
	tables := int64(1)
	for n := range v.Levels {
		tables += v.Levels[n].Bytes
	}
	return float64(tables) / (float64(tables) + float64(live))
}

// mostAbove returns the share of the last level that those above it may have together, in a store of which
// tables are a share: no more than what may be hidden of values that lie apart (see blobSpace), if there are any.
func (d *DB) mostAbove(share float64) float64 {
	return min(d.opts.SpaceAmplification-1, math.Sqrt(share/(1-share)/3))
}

// levelTargets returns the base level, and the target size of each level. Those above the base
// level have none: tables that are there, since the store was larger, go down.
func (d *DB) levelTargets(v *version.Version) (baseLevel int, targets [NumLevels]int64) {
	largest := int64(0)
	for n := lastLevel; n > 0; n-- {
		largest = max(largest, v.Levels[n].Bytes)
	}
	share := tableShare(v)
	batch, least := d.level0Batch(share), scaled(d.opts.BaseLevelSize, share)
	most := maxRewritten * batch
	above := scaled(largest, d.mostAbove(share)) - batch*3/2 // of level 0
	baseLevel = lastLevel
	targets[lastLevel] = max(largest, least)
	for size := largest; baseLevel > 1; {
		// A level that is there stays until the store is a good deal smaller.
		if there := v.Levels[baseLevel-1].Len() > 0; size <= most && !there || size <= most*3/4 {
			break
		}
		if baseLevel--; baseLevel == lastLevel-1 {
			size = above
			if size > most {
				size = size * (levelFactor - 1) / levelFactor // the others take the rest
			}
		} else {
			size /= levelFactor
		}
		targets[baseLevel] = max(size, least)
	}
	return baseLevel, targets
}

// drainedLevels is levelTargets, but the base level is the highest that has tables: one above
// that which is wanted stays it until it is drained.
func (d *DB) drainedLevels(v *version.Version) (baseLevel int, targets [NumLevels]int64) {
	baseLevel, targets = d.levelTargets(v)
	for n := 1; n < baseLevel; n++ {
		if v.Levels[n].Len() > 0 {
			return n, targets
		}
	}
	return baseLevel, targets
}

// level0Score says how badly level 0 needs a compaction: from 1 on. With the last level right
// below, it waits until it has as many bytes as SpaceAmplification allows, but not for more
// than half as many runs again: each is one more to ask for a lookup.
func (d *DB) level0Score(v *version.Version, baseLevel int) float64 {
	runs, least := v.NumRuns(0), d.opts.L0CompactionThreshold
	score := float64(runs) / float64(least)
	if runs < least || baseLevel < lastLevel {
		return score
	}
	allowed := float64(v.Levels[lastLevel].Bytes) * d.mostAbove(tableShare(v))
	return max(float64(v.Levels[0].Bytes)/max(allowed, 1), float64(runs)/float64(d.mostInLevel0()))
}

// mostInLevel0 returns the number of runs from which on level 0 of a leveled store needs a
// compaction, however small they are.
func (d *DB) mostInLevel0() int {
	least := d.opts.L0CompactionThreshold
	return max(min(least*3/2, d.opts.L0SlowdownThreshold-1), least)
}

// filesPerLevel is how many files a level has about, unless they would be too small or too
// large: many enough that it costs little what sticks out at the edges of a compaction.
const (
	filesPerLevel = 64
	minFileShare  = 8       // of TargetFileSize: the least
	leastApart    = 1 << 20 // where most values lie apart
)

// targetFileSize returns the size of a table of a level. Those of a small level are smaller,
// and those of the last level larger, so that a large store has fewer of them.
func (d *DB) targetFileSize(v *version.Version, level int) int64 {
	if level == 0 {
		return 0 // one table, however large
	}
	most := d.opts.TargetFileSize
	if level == lastLevel {
		most *= 2
	}
	if d.opts.Compaction != Leveled {
		return most
	}
	least := max(d.opts.TargetFileSize/minFileShare, minTargetFileSize)
	least = min(least, max(scaled(least, tableShare(v)), leastApart))
	_, targets := d.levelTargets(v)
	return min(max(targets[level]/filesPerLevel, least), most)
}

// mostAtOnce returns how many bytes of a level a compaction takes down at once: an eighth of
// the level, which amortises the edges, as long as that does not take long.
func (d *DB) mostAtOnce(target int64) int64 { return min(target/8, 8*d.opts.TargetFileSize) }
