package kv

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// leftAlone is the share of a blob file, one part in so many, that may be garbage after Compact.
const leftAlone = 20

// collectRange collects the blob files that have more than a little garbage, and whose values all are of tables with
// keys of [lo, end), and joins the small ones. Files that cannot be read are left alone, but a failure that says
// nothing about them is returned.
//
// It goes batch by batch: a batch takes little space before its files are gone, and between two of them the collection
// that keeps blob files to their limit has its turn. Files that come meanwhile are left to that.
func (d *DB) collectRange(ctx context.Context, lo, end []byte) error {
	err := d.collectWhile(ctx, func(next uint64) *runningCompaction { return d.pickGarbage(d.current, lo, end, next) })
	if err != nil {
		return err
	}
	return d.collectWhile(ctx, func(next uint64) *runningCompaction { return d.pickJoin(d.current, lo, end, next) })
}

// collectWhile runs what pick returns, which is given the first number of files that come meanwhile, until that is nil.
func (d *DB) collectWhile(ctx context.Context, pick func(next uint64) *runningCompaction) error {
	next := d.nextFile.Load()
	for {
		c, err := d.beginManual(ctx, func() *runningCompaction { return pick(next) })
		err = d.runManual(ctx, c, err)
		if _, ofVictim := errors.AsType[*tablemeta.VictimError](err); ofVictim && !vfs.IsDenied(err) {
			if c.joins { // each of many that are damaged would begin it again
				return nil
			}
			continue
		}
		if c == nil || err != nil {
			return err
		}
		// What the batch has emptied is gone before the next takes space.
		if d.cleaner.WaitContext(ctx) != nil {
			return base.ContextError(ctx, "a compaction was broken off")
		}
	}
}

// pickJoin returns a compaction of tables of the last level with keys of [lo, end) that joins small blob files, or nil.
// The caller holds d.mu.
func (d *DB) pickJoin(v *version.Version, lo, end []byte, next uint64) *runningCompaction {
	tables := v.Levels[lastLevel].Overlapping(lo, end)
	if v.BlobTotals().Files < leastJoined || len(v.Levels[lastLevel].RunsOver(lo, end)) != 1 {
		return nil
	}
	c := d.joinWithin(v, tables, leastJoined, next)
	if c != nil {
		c.manual = true
	}
	return c
}

// pickGarbage returns a compaction of the tables of the last level that refer to the next batch of what collectRange
// collects, of files with numbers below next, or nil. A batch is the emptiest files: of as many live bytes as a batch
// of the background frees, or as the tables have that are read for it. The caller holds d.mu.
func (d *DB) pickGarbage(v *version.Version, lo, end []byte, next uint64) *runningCompaction {
	if v.BlobTotals().Files == 0 {
		return nil
	}
	tables := v.Levels[lastLevel].Overlapping(lo, end)
	if len(tables) == 0 || len(v.Levels[lastLevel].RunsOver(lo, end)) != 1 {
		return nil
	}
	live, stuck := map[uint64]uint64{}, d.compactions.StuckBlobs(v)
	for _, t := range tables {
		for _, r := range t.Blobs {
			live[r.Num] += r.Bytes
		}
	}
	var files []*version.LiveBlob
	for num, bytes := range live {
		b := v.Blob(num)
		if num < next && b.LiveBytes == bytes && !stuck[num] && b.Garbage() > (b.LiveBytes+b.Garbage())/leftAlone {
			files = append(files, b)
		}
	}
	s := d.blobSpace(v)
	victims, left := map[uint64]bool{}, max(s.Batch, float64(version.SizeOf(tables)))
	for _, b := range emptiestFirst(files) {
		if left -= float64(b.LiveBytes); left < 0 && len(victims) > 0 {
			break
		}
		victims[b.Num] = true
	}
	var referring []*version.Table
	for _, t := range tables {
		if !t.Quarantined && t.RefersTo(victims) {
			referring = append(referring, t)
		}
	}
	if len(referring) == 0 {
		return nil
	}
	c := collect(v, referring)
	c.manual, c.victims = true, victims
	return c
}
