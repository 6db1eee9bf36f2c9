package kv

import (
	"cmp"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/version"
)

// Every level below level 0 has a target size. The last level takes what there
// is; each level above may have a tenth of the one below, and levels that would
// get less than BaseLevelSize stay empty: level 0 is compacted straight into the
// first that has a target, the base level. So a small store has two levels, and
// every lookup one filter less to ask (the idea of RocksDB's dynamic level
// sizes).

// levelFactor is how many times larger a level may be than the one above.
const levelFactor = 10

// levelTargets returns the base level, and the target size of each level.
func (d *DB) levelTargets(v *version.Version) (baseLevel int, targets [NumLevels]int64) {
	largest, highest := int64(0), lastLevel
	for n := lastLevel; n > 0; n-- {
		largest = max(largest, v.Levels[n].Bytes)
		if len(v.Levels[n].Tables) > 0 {
			highest = n
		}
	}
	// A level between is worth it only once merging level 0 into the level below
	// rewrites a good deal more than it adds.
	baseLevel = lastLevel
	size := largest
	for size > 4*d.opts.BaseLevelSize && baseLevel > 1 {
		size /= levelFactor
		baseLevel--
	}
	baseLevel = min(baseLevel, highest) // a level that has tables keeps its place until it is drained
	size = largest
	for n := lastLevel; n >= baseLevel; n-- {
		targets[n] = max(size, d.opts.BaseLevelSize)
		size /= levelFactor
	}
	return baseLevel, targets
}

// targetFileSize returns the size of a table of a level. Files of the last levels
// are larger, so that a large store has fewer of them.
func (d *DB) targetFileSize(level int) int64 {
	if level == 0 {
		return 0 // one table, however large
	}
	if level == lastLevel {
		return 2 * d.opts.TargetFileSize
	}
	return d.opts.TargetFileSize
}

// pickCompaction returns the compaction that is needed most, or nil. The caller
// holds d.mu.
func (d *DB) pickCompaction() *compaction {
	v := d.current
	if d.opts.Compaction != Leveled {
		return d.pickTiered()
	}
	if c, several := d.pickSeveralRuns(v); several {
		return c
	}
	baseLevel, targets := d.levelTargets(v)
	type scored struct {
		level int
		score float64
	}
	scores := []scored{{0, float64(len(v.Levels[0].Tables)) / float64(d.opts.L0CompactionThreshold)}}
	for n := baseLevel; n < lastLevel; n++ {
		scores = append(scores, scored{n, float64(v.Levels[n].Bytes) / float64(targets[n])})
	}
	slices.SortStableFunc(scores, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	waits := false // level 0 needs a compaction and conflicts with a running one
	for _, s := range scores {
		if waits && s.level == baseLevel {
			continue // it would keep level 0 waiting
		}
		if s.score < 1 || s.level > 0 && s.score == 1 {
			break
		}
		var c *compaction
		if s.level == 0 {
			c, waits = d.pickLevel0(v, baseLevel)
		} else {
			c = d.pickFromLevel(v, s.level)
		}
		if c != nil {
			return c
		}
	}
	if waits {
		return nil
	}
	return d.pickWaste(v, baseLevel)
}

// pickLevel0 takes all of level 0 down to the base level: its tables overlap, and
// leaving one above would leave a lookup a file to ask. It reports whether it waits
// for a running compaction, or for somebody who waits to compact. If that has lasted until
// writers slow down, level 0 is kept short by merges of its own.
func (d *DB) pickLevel0(v *version.Version, baseLevel int) (c *compaction, waits bool) {
	c = &compaction{reason: "level 0 has many files", level: 0, output: baseLevel}
	c.inputs[0] = v.Levels[0].Tables
	s := version.SpanOf(c.inputs[0])
	c.inputs[baseLevel] = v.Levels[baseLevel].Overlapping(s.Lo, s.Hi)
	switch {
	case anyQuarantined(c.tables()):
		return d.pickWithinLevel0(v), false
	case d.conflicts(c):
		if len(v.Levels[0].Tables) >= d.opts.L0SlowdownThreshold {
			if c := d.pickWithinLevel0(v); c != nil {
				return c, false
			}
		}
		return nil, true
	}
	return c, false
}

// pickFromLevel takes the table of a level whose move down rewrites least for
// what it brings.
func (d *DB) pickFromLevel(v *version.Version, n int) *compaction {
	var best *compaction
	bestRatio := 0.0
	for _, t := range v.Levels[n].Tables {
		if t.Compacting {
			continue
		}
		below := v.Levels[n+1].Overlapping(t.Smallest, t.UpperBound())
		ratio := float64(version.SizeOf(below)) / float64(t.Size)
		if best != nil && ratio >= bestRatio {
			continue
		}
		c := &compaction{reason: "the level is over its size", level: n, output: n + 1}
		c.inputs[n], c.inputs[n+1] = []*version.Table{t}, below
		if !d.conflicts(c) {
			best, bestRatio = c, ratio
		}
	}
	return best
}

// pickWithinLevel0 merges neighbours of level 0 into one table of level 0, when a table
// that is left alone, or a compaction that takes long, keeps them from going down: so that
// their number stays small. Of the stretches whose tables are not much larger than what is
// younger in them, which bounds what is rewritten by the logarithm of the number of flushes,
// the one with most tables is merged; if there is none and writers wait, the two neighbours
// that are smallest. The caller holds d.mu.
func (d *DB) pickWithinLevel0(v *version.Version) *compaction {
	tables := v.Levels[0].Tables // newest first
	var best []*version.Table
	for i := 0; i < len(tables); {
		n, bytes := 0, int64(0)
		for _, t := range tables[i:] {
			if t.Quarantined || t.Compacting || n > 0 && t.Size > 2*bytes {
				break
			}
			n++
			bytes += t.Size
		}
		if n > len(best) {
			best = tables[i : i+n]
		}
		i += max(n, 1)
	}
	if len(best) < 2 && level0Backlog(v) >= d.opts.L0StopThreshold {
		best = smallestPair(tables)
	}
	if len(best) < 2 {
		return nil
	}
	c := &compaction{reason: "level 0 has many files that cannot go down", level: 0, output: 0}
	c.inputs[0] = best
	if d.conflicts(c) {
		return nil
	}
	return c
}

// smallestPair returns the two neighbours that are smallest together, of those that can be
// merged, or nil.
func smallestPair(tables []*version.Table) (best []*version.Table) {
	for i := 1; i < len(tables); i++ {
		pair := tables[i-1 : i+1]
		free := !slices.ContainsFunc(pair, func(t *version.Table) bool { return t.Quarantined || t.Compacting })
		if free && (best == nil || version.SizeOf(pair) < version.SizeOf(best)) {
			best = pair
		}
	}
	return best
}

// pickWaste takes a table that is mostly waste down, or rewrites it in the last level,
// where there is waste only because a snapshot needed it, or time has passed. Of level 0,
// which goes down soon as it is, it takes what has mostly expired.
func (d *DB) pickWaste(v *version.Version, baseLevel int) *compaction {
	const reason = "a file is mostly tombstones, or values that expired or were overwritten"
	now := d.now()
	for n := baseLevel; n < NumLevels; n++ {
		for _, t := range v.Levels[n].Tables {
			one := []*version.Table{t}
			if t.Compacting || !version.MostlyWaste(one, n, now) || n == lastLevel && d.heldBySnapshots(one) {
				continue
			}
			c := &compaction{reason: reason, level: n, output: min(n+1, lastLevel)}
			if n < lastLevel {
				c.inputs[n+1] = v.Levels[n+1].Overlapping(t.Smallest, t.UpperBound())
			}
			c.inputs[n] = one
			if !d.conflicts(c) {
				return c
			}
		}
	}
	if v.ExpiredInLevel0(now) {
		if c, _ := d.pickLevel0(v, baseLevel); c != nil && version.WorthRewriting(c.inputs[0], c.tables()) {
			return c
		}
	}
	return nil
}

// heldBySnapshots reports whether a snapshot may see what is waste without it.
func (d *DB) heldBySnapshots(tables []*version.Table) bool {
	oldest, held := d.snapshots.oldest()
	return held && slices.ContainsFunc(tables, func(t *version.Table) bool { return oldest < t.LargestSeq })
}

// wakeAtExpiry has a look taken for compactions when the next tables get to be mostly waste
// by the time that passes: an idle store has nothing else to start one. The caller holds
// d.mu.
func (d *DB) wakeAtExpiry() {
	now, wait := d.now(), time.Duration(0)
	consider := func(tables []*version.Table, level int) {
		if w := version.UntilWaste(tables, level, now); w > 0 && (wait == 0 || w < wait) {
			wait = w
		}
	}
	v := d.current
	v.All(func(level int, t *version.Table) {
		if level == 0 || d.opts.Compaction == Leveled {
			consider([]*version.Table{t}, level)
		}
	})
	if d.opts.Compaction != Leveled {
		for i, r := range v.Runs {
			consider(r.Tables, v.WasteLevel(i))
		}
	}
	if wait > 0 {
		restart(&d.compactions.expiry, wait, d.scheduleCompactions)
	}
}
