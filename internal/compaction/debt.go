package compaction

import (
	"slices"

	"github.com/siftkv/siftkv/internal/version"
)

// The debt of a store is what compactions must still read, and write about as much of, before all levels have the
// sizes and numbers of runs that Pick asks for. It is RocksDB's estimate of pending compaction bytes, from this
// store's own rules. It follows the conditions of Pick, so that it is 0 if, and only if, they ask for nothing. What is
// due because of tombstones, expiry or garbage in tables is not part of it: that changes with snapshots and with time,
// and readers do not pay for it file by file.

// Debt returns an estimate of the bytes that compactions must still read. It takes O(runs).
func (in *Input) Debt() int64 {
	space := in.BlobSpace()
	debt := in.blobDebt(&space)
	if in.Style == Leveled {
		return debt + in.leveledDebt(&space)
	}
	return debt + in.tieredDebt(&space)
}

// blobDebt is what the batch of blob GC must still copy, or the most that a batch that is due will have.
func (in *Input) blobDebt(s *BlobSpace) (debt int64) {
	v := in.Version
	if in.State.GC.running() {
		for num := range in.State.GC.candidates {
			if b := v.Blob(num); b != nil {
				debt += int64(b.LiveBytes)
			}
		}
		return debt
	}
	if s.needsRewrite() {
		debt = v.Runs[len(v.Runs)-1].Totals().Bytes
	}
	if s.NeedsGC() {
		debt += 1 + int64((s.Over()+s.Batch)*s.Live/s.Garbage)
	}
	return debt
}

// leveledDebt follows bytes from level to level. What is over a level's target goes down, and each byte of it is
// merged with as many bytes of the next level as that has for each byte of this one. For level 0 the overlap is known.
func (in *Input) leveledDebt(space *BlobSpace) int64 {
	v, debt := in.Version, int64(0)
	var sizes [NumLevels]int64
	for n := range sizes {
		sizes[n] = v.Levels[n].Bytes
		if n > 0 && len(v.Levels[n].Runs) > 1 {
			debt += sizes[n] // it becomes one run first
		}
	}
	baseLevel, targets := in.UsedLevels(v)
	if in.level0Score(v, baseLevel) >= 1 || space.hidingScore(v, 0) >= 1 {
		s := version.SpanOf(v.Level0())
		debt += sizes[0] + v.Levels[baseLevel].BytesOver(s.Lo, s.Hi)
		sizes[baseLevel] += sizes[0]
	}
	for n := baseLevel; n < lastLevel; n++ {
		over := sizes[n] - max(targets[n], 1)
		if space.hidingScore(v, n) >= 1 {
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

// tieredDebt does to the sizes of the runs what compactions will do to the runs, and adds up what each of them takes
// in. See fullLevel and allRuns.
func (in *Input) tieredDebt(space *BlobSpace) int64 {
	debt := int64(0)
	t := sizesOfRuns(in.Version)
	lazy := in.Style == LazyLeveled
	for n := range t {
		if len(t[n]) < in.RunsAllowed(n) {
			continue
		}
		above, last := t.bytes(n, lastLevel-1), t.bytes(lastLevel, lastLevel)
		if n == lastLevel || lazy && (n == lastLevel-1 || in.worthLast(above, last)) {
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
		if space.NeedsMerge() && len(t[0]) > 0 {
			debt += t.bytes(0, lastLevel)
		}
		return debt
	}
	oldest, all := below[len(below)-1], t.bytes(1, lastLevel)
	if in.outweigh(all-oldest, oldest) || space.NeedsMerge() {
		debt += all
	}
	return debt
}

// runSizes are the bytes of the runs of each level, newest first.
type runSizes [NumLevels][]int64

func sizesOfRuns(v *version.Version) (t runSizes) {
	for n := range t {
		for _, r := range v.Levels[n].Runs {
			t[n] = append(t[n], r.Totals().Bytes)
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
