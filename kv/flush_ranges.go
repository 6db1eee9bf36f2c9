package kv

import (
	"context"
	"runtime"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/version"
)

// A flush is written in ranges of keys, as a compaction is, if that makes it shorter. There is
// at most one for each idle thread, so that they are merged, compressed and synced at the same
// time. Each range goes into a table of its own, and together the tables are one run.

// leastFlushed is the minimum of bytes of memtables for a range of a flush: below it,
// more files cost more than the time that they save.
const leastFlushed = 8 << 20

// mostFlushed bounds the ranges of a flush, lest level 0 have hundreds of files.
const mostFlushed = 16

// samplesPerRange is how many entries of each memtable are looked at for each range of a flush:
// ranges differ by a tenth then.
const samplesPerRange = 256

// flushThreads returns how many of the threads that compact may be busy while a flush writes
// its ranges. The flush has one of its own.
func (d *DB) flushThreads() int { return min(d.opts.MaxConcurrentCompactions, runtime.GOMAXPROCS(0)-1) }

// cutFlush returns the ranges of a flush, in order. They cover all keys.
func (d *DB) cutFlush(mems []*memTable) []mergedRange {
	size := int64(0)
	for _, m := range mems {
		size += m.Size()
	}
	n := size / leastFlushed
	if d.opts.rangeSize > 0 {
		n = size / d.opts.rangeSize
	} else {
		d.mu.Lock()
		n = min(n, int64(1+d.flushThreads()-d.compactions.busyThreads()))
		d.mu.Unlock()
	}
	if n = min(n, mostFlushed); n < 2 {
		return make([]mergedRange, 1)
	}
	var parts []compaction.Part
	for _, m := range mems {
		first, sum := len(parts), int64(0)
		m.Sample(int(n)*samplesPerRange, func(user []byte, size int64) {
			parts = append(parts, compaction.Part{End: user, Size: size})
			sum += size
		})
		weight := float64(m.Size()) / float64(sum) // however many samples it has
		for i := range parts[first:] {
			parts[first+i].Size = int64(float64(parts[first+i].Size) * weight)
		}
	}
	return rangesOf(compaction.EvenRanges(parts, int(n)))
}

// writeLevel0 writes memtables to the tables of one run, without what no snapshot sees. They
// are for version v. There is no table if nothing is left.
func (d *DB) writeLevel0(v *version.Version, job flushJob) (written, error) {
	var tombs []rangedel.Tombstone
	entries := 0
	for _, m := range job.mems {
		entries += m.Len()
		tombs = m.Tombstones().AppendAll(tombs)
	}
	tombs = slices.DeleteFunc(tombs, func(t rangedel.Tombstone) bool { return t.Seq > job.limit })
	filters := d.opts.filterPlan().For(filterbudget.Tables{Version: v, Entries: uint64(entries)})
	ranges := make([]mergedRange, 1)
	if job.elsewhere == nil {
		ranges = d.cutFlush(job.mems)
	}
	return d.mergeRanges(context.Background(), d.flushThreads(), ranges,
		func(ctx context.Context, r *mergedRange) (err error) {
			it := d.passMemtables(ctx, v, job, tombs, r.span)
			r.out = d.tableWriter(it, 0, 0, filters)
			if job.elsewhere != nil {
				job.elsewhere(r.out)
			} else {
				r.out.Apart, r.out.Rewrite = d.separation(v, 0), job.values.Inline(v)
				r.out.Hidden = d.hiddenIn(v, v.Runs)
			}
			r.tables, err = d.writeTables(it, r.out, nil)
			return err
		})
}

// addLevel0 adds what writeLevel0 has written to an edit, as one run.
func addLevel0(e *manifest.Edit, w written) {
	for _, t := range w.tables {
		a := manifest.AddedTable{Level: 0, Table: t}
		if len(w.tables) > 1 {
			a.Run = w.tables[0].Num
		}
		e.Added = append(e.Added, a)
	}
	e.AddedBlobs = append(e.AddedBlobs, w.blobs...)
}

// passMemtables returns an iterator over what stays of memtables, with tombs, in a span. They are for version v.
func (d *DB) passMemtables(ctx context.Context, v *version.Version, job flushJob, tombs []rangedel.Tombstone,
	span version.Span) *iterator.Compaction {
	var iters []iterator.Iter
	for _, m := range job.mems {
		it := iterator.Iter(m.NewIter())
		if job.limit < base.MaxSeqNum {
			it = iterator.UpTo(it, job.limit)
		}
		iters = append(iters, it)
	}
	stop := d.stopBackground(ctx)
	if !job.stoppable {
		stop = func() error {
			if ctx.Err() != nil { // another range has failed
				return base.ErrContextEnded
			}
			return nil
		}
	}
	return iterator.NewCompaction(iters, span.Clip(nil, tombs), iterator.CompactionOptions{
		Snapshots: job.snapshots, Keys: span, Stop: stop, MergeOperands: d.operands.combiner(), Now: d.now(),
		ReadApart: d.readForOperands(v),
	})
}
