package kv

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/vfs"
)

// collectRange collects the blob files that have more than a little garbage, and whose values all are of tables with
// keys of [lo, end), and joins the small ones. Files that cannot be read are left alone, but a failure that says
// nothing about them is returned.
//
// It goes batch by batch: a batch takes little space before its files are gone, and between two of them the collection
// that keeps blob files to their limit has its turn. Files that come meanwhile are left to that.
func (d *DB) collectRange(ctx context.Context, lo, end []byte) error {
	err := d.collectWhile(ctx, func(in *compaction.Input, next uint64) *compaction.Job {
		return in.CollectRange(lo, end, next)
	})
	if err != nil {
		return err
	}
	return d.collectWhile(ctx, func(in *compaction.Input, next uint64) *compaction.Job {
		return in.JoinRange(lo, end, next)
	})
}

// collectWhile runs what pick returns, which is given the first number of files that come meanwhile, until that is nil.
func (d *DB) collectWhile(ctx context.Context, pick func(in *compaction.Input, next uint64) *compaction.Job) error {
	next := d.nextFile.Load()
	for {
		c, err := d.beginManual(ctx, func() *compaction.Job { return pick(d.compactionInput(d.current), next) })
		err = d.runManual(ctx, c, err)
		if _, ofVictim := errors.AsType[*tablemeta.VictimError](err); ofVictim && !vfs.IsDenied(err) {
			if c.Kind == compaction.JoinBlobs { // each of many that are damaged would begin it again
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
