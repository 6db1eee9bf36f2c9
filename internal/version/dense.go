package version

// In a tombstone cluster, each point tombstone costs every scan over it a step, in any level, until
// a compaction merges it with what it deletes. So clusters start a compaction, even if neither
// their file is mostly garbage nor their level too large.

// MinDense is how many tombstones in clusters start a compaction: a scan over them takes some
// tenths of a millisecond.
const MinDense = 4 << 10

// densePart bounds what is rewritten for tombstone clusters: of the entries that are merged, at
// least one in densePart must be such a tombstone. So each tombstone causes at most densePart
// rewritten entries in each level that it passes. Fewer tombstones go down with the next compaction
// of their files.
const densePart = 10

// Dense reports whether tables with these sums, or a part of a level or run, have enough
// tombstones in clusters to start a compaction, if it is worth it.
func (s *Sums) Dense() bool { return s.DenseDeletes >= MinDense }

// WorthMerging reports whether dense tombstones in clusters are worth a merge of entries entries,
// themselves included.
func WorthMerging(dense, entries uint64) bool { return dense >= MinDense && densePart*dense >= entries }
