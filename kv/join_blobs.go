package kv

import (
	"slices"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/version"
)

// Flushes of a few large values make small blob files, and so does SetReader. Neighbouring tables of a run are
// rewritten, and the values of many small files go into one. An automatic compaction does that when nothing else is
// due, and takes many files at once. A value is copied a few times before its file is no longer small. A merge for it
// has one range, and so writes one small file at the most: the next finds nothing to join.

const (
	// A blob file is small if it has less than 1/smallBlob of the size of new ones.
	smallBlob = 8
	// Compact joins small files if there are at least leastJoined, an automatic compaction if there are manyJoined.
	leastJoined = 4
	manyJoined  = 64

	reasonSmall = "blob files are small"
)

// pickSmall returns a compaction that joins small blob files in the background, or nil. It looks for them if the files
// are small on average: that takes O(n), with n references of tables to blob files. The caller holds d.mu.
//
// It looks at all runs below level 0, the oldest first: a tiered store may have most of its files in the others, and
// rests.
func (d *DB) pickSmall(v *version.Version) *runningCompaction {
	totals := v.BlobTotals()
	if totals.Files < manyJoined || totals.RecordBytes/uint64(totals.Files) >= d.smallSize(v) ||
		d.compactions.GC.Running() {
		return nil
	}
	for _, r := range slices.Backward(v.Below()) {
		if c := d.pickSmallOf(v, r); c != nil {
			return c
		}
	}
	return nil
}

// pickSmallOf is pickSmall for one run.
func (d *DB) pickSmallOf(v *version.Version, r *version.Run) *runningCompaction {
	tables, most := r.Tables(), d.opts.compaction().MaxGCTables(v)
	for len(tables) > 0 {
		n, size := 0, int64(0)
		for n < len(tables) && (n == 0 || size+tables[n].Size <= most) {
			size += tables[n].Size
			n++
		}
		if c := d.joinWithin(v, tables[:n], manyJoined, d.nextFile.Load()); c != nil && !d.conflicts(c) {
			return c
		}
		tables = tables[n:]
	}
	return nil
}

// smallSize returns the size below which a blob file is small.
func (d *DB) smallSize(v *version.Version) uint64 {
	return uint64(d.opts.compaction().NewBlobSize(v)) / smallBlob
}

// joinWithin returns a compaction of tables of a run that joins the small blob files, with numbers below next, whose
// values all are of the tables; nil if there are fewer than least. It copies as many bytes as a step of a collection
// does, or as the tables have. The caller holds d.mu.
func (d *DB) joinWithin(v *version.Version, tables []*version.Table, least int, next uint64) *runningCompaction {
	most := max(uint64(compaction.BlobFilesAtOnce*d.opts.compaction().NewBlobSize(v)), uint64(version.SizeOf(tables)))
	stuck, small, live := d.compactions.StuckBlobs(v), map[uint64]bool{}, map[uint64]uint64{}
	size, largest := uint64(0), (*version.LiveBlob)(nil)
	for _, t := range tables {
		for _, r := range t.Blobs {
			b := v.Blob(r.Num)
			if live[r.Num] += r.Bytes; size >= most || r.Num >= next || stuck[r.Num] || live[r.Num] != b.LiveBytes ||
				b.LiveBytes+b.Garbage() >= d.smallSize(v) {
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
	if len(small) < least {
		return nil
	}
	var referring []*version.Table
	for _, t := range tables {
		if !t.Quarantined && t.RefersTo(small) {
			referring = append(referring, t)
		}
	}
	c := collect(v, referring)
	c.reason, c.victims, c.joins = reasonSmall, small, true
	return c
}
