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

// A runningCompaction merges tables of one or more levels into a run of one of them, or of the
// level below. Its inputs are closed: a table of a place in between, the output's
// included, that shares keys with an input is an input too. (Places are ordered as
// lookups ask them, see version.OlderThan.)
type runningCompaction struct {
	reason        string
	level, output int                         // the highest level of the inputs, and where they go
	inputs        [NumLevels][]*version.Table // by level
	run           uint64                      // their run in the output level: new, or one without keys of theirs
	manual        bool                        // asked for by Compact: runs in its caller's goroutine
	rewriteAll    bool                        // even what could be moved
	wholeRuns     bool                        // the inputs are whole runs, see pick_tiered.go
	fair          bool                        // filters are fair (see filterbudget)
	collects      bool                        // rewrites tables in their run, for what they refer to
	joins         bool                        // its values go into one blob file after the other: it has one range
	gaps          [][]byte                    // where tables of the output's run end that lie between inputs

	version   *version.Version        // at the start; referred to
	reserved  *compaction.Reservation // of the output
	span      version.Span            // of all inputs
	older     []*version.Run          // what is older than the inputs, where they have keys
	snapshots []base.SeqNum
	victims   map[uint64]bool // blob files whose records are copied
}

// tables returns all inputs.
func (c *runningCompaction) tables() []*version.Table { return slices.Concat(c.inputs[:]...) }

// compact runs a compaction and installs its result. It returns errClosing if the
// store closes meanwhile, and base.ErrContextEnded if ctx ends.
func (d *DB) compact(ctx context.Context, c *runningCompaction) error {
	start := time.Now()
	info := CompactionInfo{Reason: c.reason, Level: c.level, OutputLevel: c.output, Moved: c.movable(d)}
	e := &manifest.Edit{}
	var out written
	for level, inputs := range c.inputs {
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
		e.Added = append(e.Added, manifest.AddedTable{Level: c.output, Run: c.run, Table: t})
	}
	e.AddedBlobs = out.blobs
	info.OutputFiles, info.OutputBytes = len(out.tables), out.bytes()
	info.BlobFiles, info.BlobBytes, info.RelocatedBytes = len(out.blobs), out.blobBytes(), int64(out.relocated)
	if err := d.applyEdit(func() *manifest.Edit { return e }, func() {}); err != nil {
		return err
	}
	info.Duration = time.Since(start)
	d.countCompaction(info)
	if c.collects {
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
	return maxGrandparents * d.opts.compaction().TargetSize(c.version, c.output)
}

// movable reports whether the input can change its level as it is: nothing in
// the output level shares keys with it, it would not overlap too much further
// down, there are no tombstones that rewriting would drop, and blocks are compressed
// alike.
func (c *runningCompaction) movable(d *DB) bool {
	tables := c.tables()
	if c.level == c.output || c.rewriteAll || d.opts.LevelCompression[c.level] != d.opts.LevelCompression[c.output] {
		return false
	}
	if c.wholeRuns {
		return c.oneRun(tables)
	}
	if len(tables) != 1 {
		return false
	}
	t := tables[0]
	if t.RangeDeletes > 0 && c.bottomSpan(t.Smallest, t.UpperBound()) {
		return false
	}
	if c.output == lastLevel {
		return t.Deletes == 0 && t.Merges == 0
	}
	below := c.version.Levels[c.output+1].Overlapping(t.Smallest, t.UpperBound())
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
	o := &overlapBelow{most: c.mostGrandparents(d), gaps: c.gaps}
	if c.output > 0 && c.output < lastLevel && !c.wholeRuns {
		lo, hi := span.Lo, span.Hi
		if lo == nil {
			lo = c.span.Lo
		}
		if hi == nil {
			hi = c.span.Hi
		}
		o.tables = c.version.Levels[c.output+1].Overlapping(lo, hi)
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
	plan, made := d.opts.filterPlan(), filterbudget.Tables{Version: c.version, Inputs: c.tables()}
	made.To, made.Entries = version.RunID{Level: c.output, Run: c.run}, version.EntriesOf(made.Inputs)
	filters := plan.For(made)
	if c.fair {
		filters = plan.Fair(made)
	}
	size := d.opts.compaction().TargetSize(c.version, c.output)
	return d.mergeRanges(ctx, d.mostThreads(c), ranges, func(ctx context.Context, r *mergedRange) (err error) {
		it := d.pass(ctx, c, in, r.span)
		r.out = d.tableWriter(it, c.output, size, filters)
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
	for _, t := range c.tables() {
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
	return c.output > 0
}

// bottomSpan reports whether nothing older than the inputs can hold keys of [lo, hi).
func (c *runningCompaction) bottomSpan(lo, hi []byte) bool {
	for _, r := range c.older {
		if r.Overlaps(lo, hi) {
			return false
		}
	}
	return c.output > 0
}

// NumLevels is the number of levels: level 0, whose files may overlap, and
// levels 1 to 6, each one sorted run in a leveled store and several in a tiered one.
const NumLevels = manifest.NumLevels

const lastLevel = NumLevels - 1
