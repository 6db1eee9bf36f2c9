package kv

import (
	"cmp"
	"context"
	"errors"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/job"
	"github.com/siftkv/siftkv/internal/version"
)

// A FilterCompaction is what CompactFilters has to do, or has done.
type FilterCompaction struct {
	Files int   // whose filters are not those that new files get
	Bytes int64 // that these files have, and about as many are written in their place
}

// StaleFilters returns the files that CompactFilters would rewrite. Their filters, of keys or of ranges, differ from
// what the options give to new files: in family, bits per key, prefixes, or in whether there are any. A range filter
// that a file has brought to the last level does not count.
//
// Under a FilterBudget the filters are compared with the share that a file has when no other one has more than its
// own. A filter counts as different if it has at least an eighth more or fewer bytes. Memtables are not counted. The
// call opens files that are not open, and reads no filter and no block.
func (d *DB) StaleFilters() (FilterCompaction, error) {
	var sum FilterCompaction
	stale, err := d.staleFilters()
	for _, g := range stale {
		sum.add(g.Tables)
	}
	return sum, err
}

func (f *FilterCompaction) add(tables []*version.Table) {
	for _, t := range tables {
		f.Files++
		f.Bytes += t.Size
	}
}

// CompactFilters rewrites the files whose filters are not those that the options give to new files (see StaleFilters).
// It rewrites one after the other, each in its place: levels and sorted runs stay as they are, and files with the
// right filters are not read. Files are compressed, and cut into blocks, as new ones are. What no reader can see is
// dropped as in any compaction. It needs free space for one file, or for one run of level 0. Reads and writes go on,
// and so do other compactions. Memtables are not written.
//
// Each file takes effect when it is written. If ctx ends, the error matches ctx.Err(), files that were
// rewritten stay so, and another call goes on where this one ended; so it is after any other error, and after a crash.
// It returns what was rewritten. Files that are damaged are left alone; if damage is found on the way, the others are
// rewritten all the same, and the error matches ErrCorruption.
func (d *DB) CompactFilters(ctx context.Context) (FilterCompaction, error) {
	var sum FilterCompaction
	if err := d.writable(); err != nil {
		return sum, err
	}
	stale, err := d.staleFilters()
	var damage error
	for _, g := range stale {
		if err != nil {
			break
		}
		var c *job.Compaction // nil: the tables are not there any more, or are damaged
		c, err = d.runManual(ctx, func(in *compaction.Input) *compaction.Job {
			return in.RewriteFilters(g.Run, g.Tables)
		})
		if c != nil && err == nil {
			sum.add(g.Tables)
		}
		if errors.Is(err, ErrCorruption) && d.writable() == nil {
			damage, err = cmp.Or(damage, err), nil
		}
	}
	return sum, cmp.Or(err, damage)
}

// staleFilters returns the groups of tables of the current version whose filters are stale.
func (d *DB) staleFilters() ([]job.Group, error) {
	s := d.acquire(0)
	if s == nil {
		return nil, d.unreadable()
	}
	defer s.release(0)
	return d.jobEnv(s.operands).StaleFilters(s.version)
}
