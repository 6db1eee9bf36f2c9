package kv

import (
	"slices"

	"github.com/siftkv/siftkv/internal/version"
)

// The debt of a store is what compactions have yet to read, and write about as much of,
// before all levels have the sizes and numbers of runs that the picks ask for: RocksDB's
// estimate of pending compaction bytes, from this store's own rules. It goes by the conditions of
// pickCompaction, so that it is 0 if, and only if, they ask for nothing. What is due because
// of tombstones, expiry or waste is not part of it: that comes and goes with
// snapshots and with time, and readers do not pay for it file by file.

// compactionDebt returns Metrics.CompactionDebt of a version, in O(runs).
func (d *DB) compactionDebt(v *version.Version) int64 {
	d.askClock()
	d.mu.Lock()
	s := d.blobSpace(v)
	debt := d.collectionDebt(v, &s)
	d.mu.Unlock()
	if d.opts.Compaction == Leveled {
		return debt + d.leveledDebt(v, &s)
	}
	return debt + d.tieredDebt(v, &s)
}

// collectionDebt is what the batch of a collection has yet to copy, or, where one is due, what that will
// have at the most. The caller holds d.mu.
func (d *DB) collectionDebt(v *version.Version, s *blobSpace) (debt int64) {
	if d.collecting() {
		for num := range d.compactions.collection.victims {
			if b := v.Blob(num); b != nil {
				debt += int64(b.LiveBytes)
			}
		}
		return debt
	}
	if s.dead > s.mostHidden {
		debt = v.Runs[len(v.Runs)-1].Sums().Bytes
	}
	if s.collects() {
		debt += 1 + int64((s.over()+s.batch)*s.live/s.garbage)
	}
	return debt
}

// leveledDebt follows bytes from level to level: what is over a level's target goes
// down, and each byte of it is merged with as many of the next level as that has for each byte
// of this one. Of level 0 it is known what it is merged with.
func (d *DB) leveledDebt(v *version.Version, space *blobSpace) int64 {
	debt := int64(0)
	var sizes [NumLevels]int64
	for n := range sizes {
		sizes[n] = v.Levels[n].Bytes
		if n > 0 && len(v.Levels[n].Runs) > 1 {
			debt += sizes[n] // it becomes one run first
		}
	}
	baseLevel, targets := d.drainedLevels(v)
	if d.level0Score(v, baseLevel) >= 1 || d.hidingScore(v, space, 0) >= 1 {
		s := version.SpanOf(v.Level0())
		debt += sizes[0] + v.Levels[baseLevel].BytesOver(s.Lo, s.Hi)
		sizes[baseLevel] += sizes[0]
	}
	for n := baseLevel; n < lastLevel; n++ {
		over := sizes[n] - max(targets[n], 1)
		if d.hidingScore(v, space, n) >= 1 {
			over = sizes[n]
		}
		if over <= 0 {
			continue
		}
		debt += over + int64(float64(over)*float64(sizes[n+1])/float64(sizes[n]))
		sizes[n+1] += over
	}
	return debt
}

// tieredDebt does to the sizes of the runs what compactions will do to the runs, and adds up
// what each of them takes in. See pickLevel and pickAllRuns.
func (d *DB) tieredDebt(v *version.Version, space *blobSpace) int64 {
	debt := int64(0)
	t := sizesOfRuns(v)
	lazy := d.opts.Compaction == LazyLeveled
	for n := range t {
		if len(t[n]) < d.runsAllowed(n) {
			continue
		}
		above, last := t.bytes(n, lastLevel-1), t.bytes(lastLevel, lastLevel)
		if n == lastLevel || lazy && (n == lastLevel-1 || d.worthLast(above, last)) {
			debt += above + last
			t.mergeDown(n)
		} else {
			debt += t.bytes(n, n)
			t.toNextLevel(n)
		}
	}
	// What the newer runs are together may outweigh the oldest.
	below := slices.Concat(t[1:]...)
	if len(below) < 2 {
		if space.hides() && len(t[0]) > 0 {
			debt += t.bytes(0, lastLevel)
		}
		return debt
	}
	oldest, all := below[len(below)-1], t.bytes(1, lastLevel)
	if d.outweigh(all-oldest, oldest) || space.hides() {
		debt += all
	}
	return debt
}

// runSizes are the bytes of the runs of each level, newest first.
type runSizes [NumLevels][]int64

func sizesOfRuns(v *version.Version) (t runSizes) {
	for n := range t {
		for _, r := range v.Levels[n].Runs {
			t[n] = append(t[n], r.Sums().Bytes)
		}
	}
	return t
}

// bytes returns the size of the levels from one to another, both included.
func (t *runSizes) bytes(from, to int) (sum int64) {
	for n := from; n <= to; n++ {
		for _, size := range t[n] {
			sum += size
		}
	}
	return sum
}

// mergeDown makes one run of a level and all below it.
func (t *runSizes) mergeDown(from int) {
	all := t.bytes(from, lastLevel)
	clear(t[from:])
	t[lastLevel] = []int64{all}
}

// toNextLevel makes the runs of a level the newest run of the next.
func (t *runSizes) toNextLevel(n int) {
	t[n+1] = slices.Concat([]int64{t.bytes(n, n)}, t[n+1])
	t[n] = nil
}
