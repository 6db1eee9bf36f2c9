package version

// Point tombstones that lie close together cost every scan that comes to them a step each, in
// whatever level they are, until a compaction takes them to what they delete. So they start one,
// although neither their file is mostly waste nor their level too large.

// MinDense is how many tombstones in long stretches start a compaction: to pass them takes a scan
// some tenths of a millisecond.
const MinDense = 4 << 10

// densePart bounds what is rewritten for tombstones in long stretches: of the entries that are
// merged, one in so many has to be one. So each tombstone has at most so many entries rewritten
// in each level that it passes, however often it is written and wherever the other keys of its
// file are. Those that are too few for that go down with the next compaction that takes them.
const densePart = 10

// Dense reports whether tables, or a part of a level or run, with these sums have so many
// tombstones in long stretches that they start a compaction, if it is worth it.
func (s *Sums) Dense() bool { return s.DenseDeletes >= MinDense }

// WorthMerging reports whether so many tombstones in long stretches are worth the merge of so
// many entries, themselves included.
func WorthMerging(dense, entries uint64) bool { return dense >= MinDense && densePart*dense >= entries }
