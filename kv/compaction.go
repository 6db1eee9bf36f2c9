package kv

import (
	"context"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
)

// A runningCompaction is a job that has begun.
type runningCompaction struct {
	*compaction.Job
	pinned    bool                    // the job's version is referred to
	reserved  *compaction.Reservation // of the output
	snapshots []base.SeqNum
}

// compact runs a compaction and installs its result. It returns errClosing if the
// store closes meanwhile, and base.ErrContextEnded if ctx ends.
func (d *DB) compact(ctx context.Context, c *runningCompaction) error {
	start := time.Now()
	info := CompactionInfo{Reason: c.Reason, Level: c.Level, OutputLevel: c.Output, Moved: c.Kind == compaction.Move}
	e := &manifest.Edit{}
	var out written
	for level, inputs := range c.Inputs {
		for _, t := range inputs {
			e.Deleted = append(e.Deleted, manifest.DeletedTable{Level: level, Num: t.Num})
			out.tables = append(out.tables, t.Table)
			info.InputFiles++
			info.InputBytes += t.Size
		}
	}
	if !info.Moved {
		err := d.guard(func() (err error) {
			out, err = d.rewrite(ctx, c)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, t := range out.tables {
		e.Added = append(e.Added, manifest.AddedTable{Level: c.Output, Run: c.Run, Table: t})
	}
	e.AddedBlobs = out.blobs
	info.OutputFiles, info.OutputBytes = len(out.tables), out.bytes()
	info.BlobFiles, info.BlobBytes, info.RelocatedBytes = len(out.blobs), out.blobBytes(), int64(out.relocated)
	if err := d.applyEdit(func() *manifest.Edit { return e }, func() {}); err != nil {
		return err
	}
	info.Duration = time.Since(start)
	d.countCompaction(info)
	if c.Kind.Rules().CollectsBlobs {
		d.counters.BlobGCs.Add(1)
	}
	return nil
}

func (d *DB) countCompaction(info CompactionInfo) {
	if info.Moved {
		d.counters.Moves.Add(1)
	} else {
		d.counters.Compactions.Add(1)
		d.counters.CompactionRead.Add(uint64(info.InputBytes))
		d.counters.CompactionWritten.Add(uint64(info.OutputBytes))
		d.counters.BlobWritten.Add(uint64(info.BlobBytes - info.RelocatedBytes))
		d.counters.BlobRelocated.Add(uint64(info.RelocatedBytes))
	}
	d.log.Debug("compacted", "reason", info.Reason, "from", info.Level, "to", info.OutputLevel, "moved", info.Moved,
		"files in", info.InputFiles, "files out", info.OutputFiles, "bytes in", info.InputBytes, "bytes out",
		info.OutputBytes, "blob files", info.BlobFiles, "of their bytes", info.BlobBytes, "relocated",
		info.RelocatedBytes, "duration", info.Duration)
	tell(d, "Compacted", d.opts.Events.Compacted, info)
}

// rewrite merges the inputs into new tables.
func (d *DB) rewrite(ctx context.Context, c *runningCompaction) (written, error) {
	in, err := d.openInputs(c)
	if err != nil {
		return written{}, inputError{err}
	}
	ranges, err := d.cut(c)
	if err != nil {
		return written{}, inputError{err}
	}
	plan, made := d.opts.filterPlan(), filterbudget.Tables{Version: c.Version, Inputs: c.Tables()}
	made.To, made.Entries = version.RunID{Level: c.Output, Run: c.Run}, version.EntriesOf(made.Inputs)
	filters := plan.For(made)
	if c.Kind.Rules().FairFilters {
		filters = plan.Fair(made)
	}
	size := d.opts.compaction().TargetSize(c.Version, c.Output)
	return d.mergeRanges(ctx, d.mostThreads(c), ranges, func(ctx context.Context, r *mergedRange) (err error) {
		it := d.pass(ctx, c, in, r.span)
		r.out = d.tableWriter(it, c.Output, size, filters)
		r.out.Apart, r.out.Hidden = d.separationOf(c), d.hiddenIn(c.Version, c.Older)
		r.tables, err = d.writeTables(it, r.out, d.opts.compaction().CutsOf(c.Job, r.span))
		return err
	})
}

// mergeInputs are the inputs of a compaction: what is merged of runs, of which all tables are open.
type mergeInputs struct {
	runs  []*version.Run
	tombs *rangedel.Set
}

func (d *DB) openInputs(c *runningCompaction) (in mergeInputs, err error) {
	var tombs []rangedel.Tombstone
	runs := map[version.RunID][]*version.Table{}
	for _, t := range c.Tables() {
		r, err := t.Open(&d.tables)
		if err != nil {
			return in, err
		}
		tombs = r.Tombstones().Clip(tombs, nil, nil)
		id, ok := c.Version.RunOf(t)
		if !ok { // its entries would be lost with it
			return in, fmt.Errorf("table %d is not in the version that is compacted", t.Num)
		}
		runs[id] = append(runs[id], t)
	}
	in.tombs = rangedel.NewSet(tombs)
	for _, r := range c.Version.Runs {
		if len(runs[r.ID()]) == 0 {
			continue
		}
		run, err := version.NewRun(r.Level, r.Num, runs[r.ID()])
		if err != nil {
			return in, err
		}
		in.runs = append(in.runs, run)
	}
	return in, nil
}

// separationOf says which values of a compaction go into blob files, and which come from others.
func (d *DB) separationOf(c *runningCompaction) tablemeta.Separation {
	s := d.separation(c.Version, c.Output)
	s.Victims, s.Open = c.Candidates, d.values.OpenPass(c.Version, len(c.Candidates))
	return s
}

// pass returns an iterator over what stays of the inputs in a span.
func (d *DB) pass(ctx context.Context, c *runningCompaction, in mergeInputs, span version.Span) *iterator.Compaction {
	var iters []iterator.Iter
	sequential := sstable.IterOptions{Sequential: true}
	for _, r := range in.runs {
		iters = append(iters, iterator.NewRun(r, &d.tables, sequential))
	}
	return iterator.NewCompaction(iters, in.tombs.Clip(nil, span.Lo, span.Hi), iterator.CompactionOptions{
		Snapshots: c.snapshots, Keys: span, Bottom: c.Bottom, BottomSpan: c.BottomSpan,
		Stop: d.stopBackground(ctx), MergeOperands: d.operands.combiner(), Now: d.now(),
		ReadApart: d.readForOperands(c.Version),
	})
}

// NumLevels is the number of levels: level 0, whose files may overlap, and
// levels 1 to 6, each one sorted run in a leveled store and several in a tiered one.
const NumLevels = manifest.NumLevels

const lastLevel = NumLevels - 1
