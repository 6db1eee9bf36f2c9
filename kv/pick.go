package kv

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/version"
)

// pickCompaction returns the compaction that is needed most, or nil. The caller
// holds d.mu.
func (d *DB) pickCompaction() *runningCompaction {
	v := d.current
	if d.collectsFirst(v) {
		s := d.blobSpace(v)
		if c := d.pickCollection(v, &s); c != nil {
			return c
		}
	}
	if d.opts.Compaction != Leveled {
		return d.pickTiered()
	}
	return d.pickLeveled(v)
}

func (d *DB) pickLeveled(v *version.Version) *runningCompaction {
	if c, several := d.pickSeveralRuns(v); several {
		return c
	}
	baseLevel, targets := d.opts.compaction().UsedLevels(v)
	type scored struct {
		level int
		score float64
	}
	space := d.blobSpace(v)
	scores := []scored{{0, max(d.opts.compaction().Level0Score(v, baseLevel), space.HidingScore(v, 0))},
		{blobLevel, d.collectionScore(&space)}}
	for n := baseLevel; n < lastLevel; n++ {
		score := float64(v.Levels[n].Bytes) / float64(max(targets[n], 1))
		scores = append(scores, scored{n, max(score, space.HidingScore(v, n))})
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
		var c *runningCompaction
		switch s.level {
		case blobLevel:
			if c = d.pickForBlobs(v, &space); c != nil && waits && c.output == baseLevel {
				c = nil
			}
		case 0:
			c, waits = d.pickLevel0(v, baseLevel)
		default:
			c = d.pickLowerLevel(v, &space, s.level, targets[s.level])
		}
		if c != nil {
			return c
		}
	}
	if waits {
		return nil
	}
	if c := d.pickDense(v, baseLevel); c != nil {
		return c
	}
	if c := d.pickWaste(v, baseLevel); c != nil {
		return c
	}
	return d.pickSmall(v)
}

// pickLowerLevel takes tables of a level down that hide values, or else some if the level is over its target.
func (d *DB) pickLowerLevel(v *version.Version, s *compaction.BlobSpace, level int,
	target int64) (c *runningCompaction) {
	if s.NeedsMerge() && s.HidingLevel(v) == level {
		c = d.pickHiding(v, level)
	}
	if c != nil || v.Levels[level].Bytes <= target {
		return c
	}
	if c = d.pickFromLevel(v, level, d.opts.compaction().MaxAtOnce(target)); c == nil { // some may be damaged or busy
		c = d.pickFromLevel(v, level, 0)
	}
	return c
}

// pickLevel0 takes all of level 0 down to the base level: its tables overlap, and
// leaving one above would leave a lookup a file to ask. It reports whether it waits
// for a running compaction, or for somebody who waits to compact. If that has lasted until
// writers slow down, level 0 is kept short by merges of its own.
func (d *DB) pickLevel0(v *version.Version, baseLevel int) (c *runningCompaction, waits bool) {
	c = &runningCompaction{reason: "level 0 has many files", level: 0, output: baseLevel}
	c.inputs[0] = v.Level0()
	s := version.SpanOf(c.inputs[0])
	c.inputs[baseLevel] = v.Levels[baseLevel].Overlapping(s.Lo, s.Hi)
	if !d.conflicts(c) {
		return c, false
	}
	if c := d.pickLevel0Group(v, baseLevel); c != nil {
		return c, false
	}
	if anyQuarantined(c.tables()) {
		return d.pickWithinLevel0(v), false
	}
	if v.NumRuns(0) >= d.opts.L0SlowdownThreshold {
		if c := d.pickWithinLevel0(v); c != nil {
			return c, false
		}
	}
	return nil, true
}

// pickLevel0Group takes those tables of level 0 that share keys with each other and with no
// other table of it, where the whole of level 0 cannot go down: of the groups that can, the
// one with tables of most runs. Nothing of theirs is left above, so that what is newer stays above
// what is older. Groups of few runs wait, but for those that share no keys with the base level
// and need only be moved. The caller holds d.mu.
func (d *DB) pickLevel0Group(v *version.Version, baseLevel int) (best *runningCompaction) {
	tables := slices.Clone(v.Level0())
	slices.SortFunc(tables, func(a, b *version.Table) int { return bytes.Compare(a.Smallest, b.Smallest) })
	most := 0
	for from := 0; from < len(tables); {
		to := from + 1
		s := version.SpanOf(tables[from:to])
		for to < len(tables) && tables[to].Overlaps(s.Lo, s.Hi) {
			to++
			s = version.SpanOf(tables[from:to])
		}
		group := tables[from:to]
		runs := v.RunsOf(group)
		if from = to; best != nil && runs <= most || len(group) == len(tables) {
			continue
		}
		c := &runningCompaction{reason: "level 0 has many files", level: 0, output: baseLevel}
		c.inputs[0], c.inputs[baseLevel] = group, v.Levels[baseLevel].Overlapping(s.Lo, s.Hi)
		worth := runs >= d.opts.L0CompactionThreshold || len(c.inputs[baseLevel]) == 0
		if worth && !d.conflicts(c) {
			best, most = c, runs
		}
	}
	return best
}

// mostWeighed is how many tables of a level are weighed against each other for a compaction:
// of so many, one is nearly as good as the best of all.
const mostWeighed = 256

// pickFromLevel takes neighbours of a level, of most bytes or one, whose move down rewrites
// least for what it brings, among the next mostWeighed tables that have any which can go down:
// the next pick goes on behind these.
func (d *DB) pickFromLevel(v *version.Version, n int, most int64) *runningCompaction {
	for _, r := range v.Levels[n].Runs { // one, in a leveled store
		from, stretches := 0, 1
		if r.Len() > mostWeighed {
			from, _ = r.Find(d.compactions.Weighed[n])
			stretches += (r.Len() + mostWeighed - 1) / mostWeighed // one ends with the level
		}
		for range stretches {
			if from == r.Len() {
				from = 0
			}
			tables := r.Between(from, min(from+mostWeighed, r.Len()))
			if c := d.pickAmong(v, n, tables, most); c != nil {
				d.compactions.Weighed[n] = tables[len(tables)-1].UpperBound()
				return c
			}
			from += len(tables)
		}
	}
	return nil
}

// pickAmong is pickFromLevel among some neighbours of the level. Several tables that go down
// at once share those below that stick out at their edges. It takes O(n log m), with n tables
// to choose from and m below.
func (d *DB) pickAmong(v *version.Version, n int, tables []*version.Table, most int64) *runningCompaction {
	below := &v.Levels[n+1]
	var best *runningCompaction
	bestRatio, size := 0.0, int64(0)
	for i, j := 0, 0; i < len(tables); i++ {
		for ; j < len(tables) && (j <= i || size+tables[j].Size <= most); j++ {
			size += tables[j].Size
		}
		some := tables[i:j]
		ratio := float64(below.BytesOver(some[0].Smallest, some[len(some)-1].UpperBound())) / float64(size)
		if size -= tables[i].Size; !below.Overlaps(tables[i].Smallest, tables[i].UpperBound()) {
			some, ratio = some[:1], 0 // it need only be moved
		}
		if best != nil && ratio >= bestRatio {
			continue
		}
		c := &runningCompaction{reason: "the level is over its size", level: n, output: n + 1}
		c.inputs[n], c.inputs[n+1] = some, below.Overlapping(some[0].Smallest, some[len(some)-1].UpperBound())
		if !d.conflicts(c) {
			best, bestRatio = c, ratio
		}
	}
	return best
}

// pickWithinLevel0 merges neighbours of level 0 into one table of level 0, when a table
// that is left alone, or a compaction that takes long, keeps them from going down: so that
// the number of runs stays small. Of the stretches whose runs are not much larger than what is
// younger in them, which bounds what is rewritten by the logarithm of the number of flushes,
// the one with most runs is merged; if there is none and writers wait, the two neighbours
// that are smallest. Runs are merged whole, which keeps their order. The caller holds d.mu.
func (d *DB) pickWithinLevel0(v *version.Version) *runningCompaction {
	runs := v.Levels[0].Runs // newest first
	var best []*version.Run
	for i := 0; i < len(runs); {
		n, bytes := 0, int64(0)
		for _, r := range runs[i:] {
			size := r.Sums().Bytes
			if !freeRun(r) || n > 0 && size > 2*bytes {
				break
			}
			n++
			bytes += size
		}
		if n > len(best) {
			best = runs[i : i+n]
		}
		i += max(n, 1)
	}
	if len(best) < 2 && level0Backlog(v) >= d.opts.L0StopThreshold {
		best = smallestPair(runs)
	}
	if len(best) < 2 {
		return nil
	}
	c := &runningCompaction{reason: "level 0 has many files that cannot go down", level: 0, output: 0}
	for _, r := range best {
		c.inputs[0] = append(c.inputs[0], r.Tables()...)
	}
	if d.conflicts(c) {
		return nil
	}
	return c
}

// freeRun reports whether all tables of a run can be merged.
func freeRun(r *version.Run) bool {
	return !slices.ContainsFunc(r.Tables(), func(t *version.Table) bool { return t.Quarantined || t.Compacting })
}

// smallestPair returns the two neighbours that are smallest together, of those that can be
// merged, or nil.
func smallestPair(runs []*version.Run) (best []*version.Run) {
	least := int64(0)
	for i := 1; i < len(runs); i++ {
		pair := runs[i-1 : i+1]
		size := pair[0].Sums().Bytes + pair[1].Sums().Bytes
		if freeRun(pair[0]) && freeRun(pair[1]) && (best == nil || size < least) {
			best, least = pair, size
		}
	}
	return best
}

// pickWaste takes a table that is mostly waste down, or rewrites it in the last level,
// where there is waste only because a snapshot needed it, or time has passed. Of level 0,
// which goes down soon as it is, it takes what has mostly expired.
func (d *DB) pickWaste(v *version.Version, baseLevel int) *runningCompaction {
	const reason = "a file is mostly tombstones, or values that expired or were overwritten"
	now := d.told.time()
	for n := baseLevel; n < NumLevels; n++ {
		for t := range v.Levels[n].Where(func(s *version.Sums) bool {
			return s.FirstWaste <= now && (n < lastLevel || !d.heldBySnapshots(s.OldestTop))
		}) {
			if t.Compacting {
				continue
			}
			c := &runningCompaction{reason: reason, level: n, output: min(n+1, lastLevel)}
			if n < lastLevel {
				c.inputs[n+1] = v.Levels[n+1].Overlapping(t.Smallest, t.UpperBound())
			}
			c.inputs[n] = []*version.Table{t}
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

// heldBySnapshots reports whether a snapshot may see what is waste without it in tables of
// which the largest sequence number is seq.
func (d *DB) heldBySnapshots(seq base.SeqNum) bool {
	oldest, held := d.snapshots.oldest()
	return held && oldest < seq
}

// wakeAtExpiry has a look taken for compactions when the next tables get to be mostly waste, or
// enough values that lie apart expire, by the time that passes: an idle store has nothing else to
// start one. The caller holds d.mu.
func (d *DB) wakeAtExpiry() {
	now, wait := d.told.time(), time.Duration(0)
	consider := func(w time.Duration) {
		if w > 0 && (wait == 0 || w < wait) {
			wait = w
		}
	}
	v := d.current
	consider(d.untilDead(v))
	for n := range v.Levels {
		if n == 0 || d.opts.Compaction == Leveled {
			consider(v.Levels[n].UntilNextWaste(now))
		}
	}
	if d.opts.Compaction != Leveled {
		for i, r := range v.Below() {
			consider(r.UntilWaste(v.WasteLevel(i), now))
		}
	}
	if wait > 0 {
		restart(&d.compactions.expiry, wait, d.scheduleCompactions)
	}
}
