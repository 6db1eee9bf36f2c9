package compaction

import "github.com/siftkv/siftkv/internal/version"

// movable reports whether the inputs can change their level as they are. Nothing in the output level shares keys with
// them, and they would not overlap too much further down. There are no tombstones that rewriting would drop, and
// blocks are compressed alike.
func (in *Input) movable(j *Job) bool {
	tables := j.Tables()
	if j.Level == j.Output || !j.Kind.Rules().MayMove || in.Compression[j.Level] != in.Compression[j.Output] {
		return false
	}
	if j.Kind.Rules().WholeRuns {
		return j.oneRun(tables)
	}
	if len(tables) != 1 {
		return false
	}
	t := tables[0]
	if t.RangeDeletes > 0 && j.BottomSpan(t.Smallest, t.UpperBound()) {
		return false
	}
	if j.Output == lastLevel {
		return t.Deletes == 0 && t.Merges == 0
	}
	below := j.Version.Levels[j.Output+1].Overlapping(t.Smallest, t.UpperBound())
	return version.SizeOf(below) <= in.maxOverlap(j)
}

// oneRun reports whether whole runs are one run together as they are: they share no keys (as when keys come in
// order), and have nothing that rewriting would drop.
func (j *Job) oneRun(tables []*version.Table) bool {
	version.SortTables(tables)
	for i, t := range tables {
		if i > 0 && !tables[i-1].Before(t.Smallest) {
			return false
		}
		if t.Deletes+t.Merges+t.RangeDeletes > 0 && j.BottomSpan(t.Smallest, t.UpperBound()) {
			return false
		}
	}
	return true
}
