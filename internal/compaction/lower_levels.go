package compaction

import "github.com/siftkv/siftkv/internal/version"

// lowerLevel takes tables of a level down that hide values. If there are none, and the level is over its target, it
// takes some others.
func (in *Input) lowerLevel(s *BlobSpace, level int, target int64) (j *Job) {
	if s.NeedsMerge() && s.hidingLevel(in.Version) == level {
		j = in.hidingTable(level)
	}
	if j != nil || in.Version.Levels[level].Bytes <= target {
		return j
	}
	if j = in.fromLevel(level, in.maxAtOnce(target)); j == nil { // each of them has a table that is damaged or busy
		j = in.fromLevel(level, 0)
	}
	return j
}

// hidingTable takes down the table of a level below level 0 that hides most for what is rewritten.
func (in *Input) hidingTable(level int) (best *Job) {
	v, maxWorth := in.Version, 0.0
	below := &v.Levels[level+1]
	for t := range v.Levels[level].Where(func(s *version.Totals) bool { return s.HiddenBytes+s.RangeDeletes > 0 }) {
		worth := float64(t.HiddenBytes()) / float64(t.Size+below.BytesOver(t.Smallest, t.UpperBound()))
		if worth <= maxWorth {
			continue
		}
		j := merge(v, ReasonHidden, []*version.Table{t}, level, level+1)
		if !in.conflicts(j) {
			best, maxWorth = j, worth
		}
	}
	return best
}

// maxWeighed is how many tables of a level are weighed against each other for a job: of that many, one is nearly as
// good as the best of all.
const maxWeighed = 256

// fromLevel takes neighbouring tables of a level down, with at most a number of bytes, or one table. It takes those
// that rewrite least for what they bring, among the next maxWeighed tables that have any which can go down. The next
// call goes on after these.
func (in *Input) fromLevel(level int, maxBytes int64) *Job {
	for _, r := range in.Version.Levels[level].Runs { // one, in a leveled store
		from, stretches := 0, 1
		if r.Len() > maxWeighed {
			from, _ = r.Find(in.State.weighed[level])
			stretches += (r.Len() + maxWeighed - 1) / maxWeighed // one ends with the level
		}
		for range stretches {
			if from == r.Len() {
				from = 0
			}
			tables := r.Between(from, min(from+maxWeighed, r.Len()))
			if j := in.bestOf(tables, level, maxBytes); j != nil {
				in.State.weighed[level] = tables[len(tables)-1].UpperBound()
				return j
			}
			from += len(tables)
		}
	}
	return nil
}

// bestOf is fromLevel among some neighbours of the level. Tables that go down together share the tables below that
// reach over their edges. It takes O(n log m), with n tables to choose from and m below.
func (in *Input) bestOf(tables []*version.Table, level int, maxBytes int64) (best *Job) {
	v := in.Version
	below := &v.Levels[level+1]
	bestRatio, size := 0.0, int64(0)
	for i, j := 0, 0; i < len(tables); i++ {
		for ; j < len(tables) && (j <= i || size+tables[j].Size <= maxBytes); j++ {
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
		job := merge(v, "the level is over its size", some, level, level+1)
		if !in.conflicts(job) {
			best, bestRatio = job, ratio
		}
	}
	return best
}
