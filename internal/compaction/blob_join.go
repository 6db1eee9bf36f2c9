package compaction

import (
	"math"
	"slices"

	"github.com/siftkv/siftkv/internal/version"
)

// Flushes of a few large values make small blob files, and so do streamed values. Neighbouring tables of a run are
// rewritten, and the values of many small files go into one. The background does that when nothing else is due, and
// takes many files at once: a value is copied a few times before its file is no longer small. A job for it has one
// range, and so writes one small file at most: the next finds nothing to join.

const (
	smallBlob = 8  // a blob file is small with less than one part in smallBlob of the size of new ones
	minJoined = 4  // a caller's job joins at least that many small files
	manySmall = 64 // and one of the background that many
)

// smallBlobs joins small blob files, if the files are small on average. It takes O(n), with n references of tables to
// blob files.
//
// It looks at all runs below level 0, the oldest first: most files of a tiered store may be those of other runs.
func (in *Input) smallBlobs() *Job {
	totals := in.Version.BlobTotals()
	if totals.Files < manySmall || totals.RecordBytes/uint64(totals.Files) >= in.smallSize() || in.State.GC.running() {
		return nil
	}
	for _, r := range slices.Backward(in.Version.Below()) {
		if j := in.smallBlobsOf(r); j != nil {
			return j
		}
	}
	return nil
}

// smallBlobsOf is smallBlobs for one run.
func (in *Input) smallBlobsOf(r *version.Run) *Job {
	tables, maxBytes := r.Tables(), in.MaxGCTables(in.Version)
	for len(tables) > 0 {
		n, size := 0, int64(0)
		for n < len(tables) && (n == 0 || size+tables[n].Size <= maxBytes) {
			size += tables[n].Size
			n++
		}
		if j := in.join(tables[:n], manySmall, math.MaxUint64); j != nil && !in.conflicts(j) {
			return j
		}
		tables = tables[n:]
	}
	return nil
}

// smallSize returns the size below which a blob file is small.
func (in *Input) smallSize() uint64 { return uint64(in.NewBlobSize(in.Version)) / smallBlob }

// join returns a job for tables of a run that joins the small blob files, with numbers below next, of which only these
// tables have values. It returns nil if there are fewer than minFiles. The job copies as many bytes as a step of blob
// GC, or as the tables have.
func (in *Input) join(tables []*version.Table, minFiles int, next uint64) *Job {
	v := in.Version
	maxBytes := max(uint64(blobFilesAtOnce*in.NewBlobSize(v)), uint64(version.SizeOf(tables)))
	stuck, small, live := in.State.StuckBlobs(v), map[uint64]bool{}, map[uint64]uint64{}
	size, largest := uint64(0), (*version.LiveBlob)(nil)
	for _, t := range tables {
		for _, r := range t.Blobs {
			b := v.Blob(r.Num)
			if live[r.Num] += r.Bytes; size >= maxBytes || r.Num >= next || stuck[r.Num] ||
				live[r.Num] != b.LiveBytes || b.LiveBytes+b.Garbage() >= in.smallSize() {
				continue
			}
			small[r.Num] = true
			size += b.LiveBytes
			if largest == nil || b.LiveBytes > largest.LiveBytes {
				largest = b
			}
		}
	}
	if largest != nil && 2*largest.LiveBytes > size { // it waits until the others have as much
		delete(small, largest.Num)
	}
	if len(small) < minFiles {
		return nil
	}
	j := rewrite(v, JoinBlobs, reasonSmall, referring(tables, small))
	j.Candidates = small
	return j
}

// referring returns those of some tables that refer to blob files and are not quarantined.
func referring(tables []*version.Table, files map[uint64]bool) (some []*version.Table) {
	for _, t := range tables {
		if !t.Quarantined && t.RefersTo(files) {
			some = append(some, t)
		}
	}
	return some
}
