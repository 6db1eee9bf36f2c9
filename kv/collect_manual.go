package kv

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// leftAlone is the share of a blob file, one part in so many, that may be garbage after Compact.
const leftAlone = 20

// collectRange collects the blob files that have more than a little garbage, and whose values all are of tables with
// keys of [lo, end). Files that cannot be read are left alone, but a failure that says nothing about them is returned.
func (d *DB) collectRange(ctx context.Context, lo, end []byte) error {
	for {
		c, err := d.beginManual(ctx, func() *compaction { return d.pickGarbage(d.current, lo, end) })
		err = d.runManual(ctx, c, err)
		if _, ofVictim := errors.AsType[*tablemeta.VictimError](err); !ofVictim || vfs.IsDenied(err) {
			return err
		}
	}
}

// pickGarbage returns a compaction of the tables of the last level that refer to what collectRange collects, or nil.
// The caller holds d.mu.
func (d *DB) pickGarbage(v *version.Version, lo, end []byte) *compaction {
	if v.BlobTotals().Files == 0 {
		return nil
	}
	tables := v.Levels[lastLevel].Overlapping(lo, end)
	if len(tables) == 0 || len(v.Levels[lastLevel].RunsOver(lo, end)) != 1 {
		return nil
	}
	live, stuck := map[uint64]uint64{}, d.stuckBlobs(v)
	for _, t := range tables {
		for _, r := range t.Blobs {
			live[r.Num] += r.Bytes
		}
	}
	victims := map[uint64]bool{}
	for num, bytes := range live {
		b := v.Blob(num)
		if b.LiveBytes == bytes && !stuck[num] && b.Garbage() > (b.LiveBytes+b.Garbage())/leftAlone {
			victims[num] = true
		}
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
