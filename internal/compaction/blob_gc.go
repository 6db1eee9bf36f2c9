package compaction

import "github.com/siftkv/siftkv/internal/version"

// BlobGC is the state of blob garbage collection.
type BlobGC struct {
	Candidates map[uint64]bool  // blob files of the batch; never changed, as compactions have it
	Waiting    []*version.Table // tables known to refer to candidates, by run and in key order
	Excluded   map[uint64]bool  // blob files that could not be read
}

// Running reports whether a batch has begun.
func (b *BlobGC) Running() bool { return len(b.Candidates) > 0 }

// StuckBlobs returns the blob files that cannot be collected: those that could not be read, and those to which
// quarantined tables refer.
func (s *State) StuckBlobs(v *version.Version) map[uint64]bool {
	var stuck map[uint64]bool
	add := func(num uint64) {
		if stuck == nil {
			stuck = map[uint64]bool{}
		}
		stuck[num] = true
	}
	for num := range s.GC.Excluded {
		add(num)
	}
	for _, t := range s.Quarantined {
		if t.Quarantined && v.Has(t.Num) {
			for _, r := range t.Blobs {
				add(r.Num)
			}
		}
	}
	return stuck
}

// BlobFilesAtOnce is how many blob files' worth of records a step of blob GC copies. With that many, few files are
// smaller because the step ends, and other compactions do not wait for long.
const BlobFilesAtOnce = 4

// MaxGCTables is how many bytes of tables a step of blob GC takes, if it takes more than one table. Where most values
// are in tables, each of these may refer to little of a candidate.
func (o *Options) MaxGCTables(v *version.Version) int64 {
	return max(BlobFilesAtOnce*o.NewBlobSize(v), 8*o.TargetFileSize)
}
