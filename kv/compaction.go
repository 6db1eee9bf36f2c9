package kv

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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
	version   *version.Version        // at the start; referred to
	reserved  *compaction.Reservation // of the output
	span      version.Span            // of all inputs
	older     []*version.Run          // what is older than the inputs, where they have keys
	snapshots []base.SeqNum
}

// compact runs a compaction and installs its result. It returns errClosing if the
// store closes meanwhile, and base.ErrContextEnded if ctx ends.
func (d *DB) compact(ctx context.Context, c *runningCompaction) error {
	start := time.Now()
	info := CompactionInfo{Reason: c.Reason, Level: c.Level, OutputLevel: c.Output, Moved: c.movable(d)}
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
		d.counters.collections.Add(1)
	}
	return nil
}

func (d *DB) countCompaction(info CompactionInfo) {
	if info.Moved {
		d.counters.moves.Add(1)
	} else {
		d.counters.compactions.Add(1)
		d.counters.compactionRead.Add(uint64(info.InputBytes))
		d.counters.compactionWritten.Add(uint64(info.OutputBytes))
		d.counters.blobWritten.Add(uint64(info.BlobBytes - info.RelocatedBytes))
		d.counters.blobRelocated.Add(uint64(info.RelocatedBytes))
	}
	d.log.Debug("compacted", "reason", info.Reason, "from", info.Level, "to", info.OutputLevel, "moved", info.Moved,
		"files in", info.InputFiles, "files out", info.OutputFiles, "bytes in", info.InputBytes, "bytes out",
		info.OutputBytes, "blob files", info.BlobFiles, "of their bytes", info.BlobBytes, "relocated",
		info.RelocatedBytes, "duration", info.Duration)
	tell(d, "Compacted", d.opts.Events.Compacted, info)
}

// maxGrandparents bounds, in files of the output level, what a table may overlap
// two levels down: more would make its next compaction large.
const maxGrandparents = 10

func (c *runningCompaction) mostGrandparents(d *DB) int64 {
	return maxGrandparents * d.opts.compaction().TargetSize(c.version, c.Output)
}

// movable reports whether the input can change its level as it is. Nothing in the output level shares keys with it, and
// it would not overlap too much further down. There are no tombstones that rewriting would drop, and blocks are
// compressed alike.
func (c *runningCompaction) movable(d *DB) bool {
	tables := c.Tables()
	if c.Level == c.Output || !c.Kind.Rules().MayMove ||
		d.opts.LevelCompression[c.Level] != d.opts.LevelCompression[c.Output] {
		return false
	}
	if c.Kind.Rules().WholeRuns {
		return c.oneRun(tables)
	}
	if len(tables) != 1 {
		return false
	}
	t := tables[0]
	if t.RangeDeletes > 0 && c.bottomSpan(t.Smallest, t.UpperBound()) {
		return false
	}
	if c.Output == lastLevel {
		return t.Deletes == 0 && t.Merges == 0
	}
	below := c.version.Levels[c.Output+1].Overlapping(t.Smallest, t.UpperBound())
	return version.SizeOf(below) <= c.mostGrandparents(d)
}

// oneRun reports whether whole runs are one run together as they are: they share no keys
// (as when keys come in order), and have nothing that rewriting would drop.
func (c *runningCompaction) oneRun(tables []*version.Table) bool {
	tables = slices.Clone(tables)
	slices.SortFunc(tables, func(a, b *version.Table) int { return bytes.Compare(a.Smallest, b.Smallest) })
	for i, t := range tables {
		if i > 0 && !tables[i-1].Before(t.Smallest) {
			return false
		}
		if t.Deletes+t.Merges+t.RangeDeletes > 0 && c.bottomSpan(t.Smallest, t.UpperBound()) {
			return false
		}
	}
	return true
}

// An overlapBelow adds up the tables of the level below the output that the open
// output table of a span has passed.
type overlapBelow struct {
	gaps   [][]byte         // keys at which a table has to end, ahead
	tables []*version.Table // those ahead
	bytes  int64            // of those passed since the last cut
	most   int64
}

func (c *runningCompaction) overlapBelow(d *DB, span version.Span) *overlapBelow {
	o := &overlapBelow{most: c.mostGrandparents(d), gaps: c.Gaps}
	if c.Output > 0 && c.Output < lastLevel && !c.Kind.Rules().WholeRuns {
		lo, hi := span.Lo, span.Hi
		if lo == nil {
			lo = c.span.Lo
		}
		if hi == nil {
			hi = c.span.Hi
		}
		o.tables = c.version.Levels[c.Output+1].Overlapping(lo, hi)
	}
	return o
}

// tooMuch reports whether a table that goes on to key would overlap too much.
func (o *overlapBelow) tooMuch(key []byte) bool {
	for len(o.tables) > 0 && o.tables[0].Before(key) {
		o.bytes += o.tables[0].Size
		o.tables = o.tables[1:]
	}
	return o.bytes > o.most
}

// cutGaps cuts at the gaps up to a key (nil: at all that are left): no table reaches over tables of its run.
func (o *overlapBelow) cutGaps(out *tablemeta.Writer, key []byte) error {
	for ; len(o.gaps) > 0 && (key == nil || bytes.Compare(o.gaps[0], key) <= 0); o.gaps = o.gaps[1:] {
		if err := out.Cut(o.gaps[0]); err != nil {
			return err
		}
		o.bytes = 0
	}
	return nil
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
	plan, made := d.opts.filterPlan(), filterbudget.Tables{Version: c.version, Inputs: c.Tables()}
	made.To, made.Entries = version.RunID{Level: c.Output, Run: c.Run}, version.EntriesOf(made.Inputs)
	filters := plan.For(made)
	if c.Kind.Rules().FairFilters {
		filters = plan.Fair(made)
	}
	size := d.opts.compaction().TargetSize(c.version, c.Output)
	return d.mergeRanges(ctx, d.mostThreads(c), ranges, func(ctx context.Context, r *mergedRange) (err error) {
		it := d.pass(ctx, c, in, r.span)
		r.out = d.tableWriter(it, c.Output, size, filters)
		r.out.Apart, r.out.Hidden = d.separationOf(c), d.hiddenIn(c.version, c.older)
		r.tables, err = d.writeTables(it, r.out, c.overlapBelow(d, r.span))
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
		id, ok := c.version.RunOf(t)
		if !ok { // its entries would be lost with it
			return in, fmt.Errorf("table %d is not in the version that is compacted", t.Num)
		}
		runs[id] = append(runs[id], t)
	}
	in.tombs = rangedel.NewSet(tombs)
	for _, r := range c.version.Runs {
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
	s := d.separation(c.version, c.Output)
	s.Victims, s.Open = c.Candidates, d.openApart(c.version, len(c.Candidates))
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
		Snapshots: c.snapshots, Keys: span, Bottom: c.bottom, BottomSpan: c.bottomSpan,
		Stop: d.stopBackground(ctx), MergeOperands: d.operands.combiner(), Now: d.now(),
		ReadApart: d.readForOperands(c.version),
	})
}

// bottom reports whether nothing older than the inputs can hold key. Within level 0
// there may always be something.
func (c *runningCompaction) bottom(key []byte) bool {
	for _, r := range c.older {
		if r.MayContain(key) {
			return false
		}
	}
	return c.Output > 0
}

// bottomSpan reports whether nothing older than the inputs can hold keys of [lo, hi).
func (c *runningCompaction) bottomSpan(lo, hi []byte) bool {
	for _, r := range c.older {
		if r.Overlaps(lo, hi) {
			return false
		}
	}
	return c.Output > 0
}

// NumLevels is the number of levels: level 0, whose files may overlap, and
// levels 1 to 6, each one sorted run in a leveled store and several in a tiered one.
const NumLevels = manifest.NumLevels

const lastLevel = NumLevels - 1
