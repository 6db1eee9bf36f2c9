package kv

import (
	"context"
	"time"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/job"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/operand"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
)

// compact runs a compaction, installs its result, and draws the conclusions. It returns errClosing if the store closes
// meanwhile, and base.ErrContextEnded if ctx ends.
func (d *DB) compact(ctx context.Context, c *job.Compaction) error {
	start := time.Now()
	e, out, err := c.Do(ctx, d.jobEnv(d.operands))
	out.Stats.CountIn(&d.counters, d.log)
	if err == nil {
		err = d.applyEdit(func() *manifest.Edit { return e }, func() {})
	}
	if err == nil {
		countCompaction(d, c, &out, time.Since(start))
	}
	d.afterCompaction(c, err)
	return err
}

// countCompaction counts and reports a compaction that has worked.
func countCompaction(d *DB, c *job.Compaction, out *job.Output, took time.Duration) {
	tables := c.Tables()
	info := CompactionInfo{Reason: c.Reason, Level: c.Level, OutputLevel: c.Output, Moved: c.Kind == compaction.Move,
		InputFiles: len(tables), InputBytes: version.SizeOf(tables), OutputFiles: len(out.Tables),
		OutputBytes: out.Bytes(), BlobFiles: len(out.Blobs), BlobBytes: out.BlobBytes(),
		RelocatedBytes: int64(out.Relocated), Duration: took}
	if c.Kind.Rules().CollectsBlobs {
		d.counters.BlobGCs.Add(1)
	}
	if info.Moved {
		d.counters.Moves.Add(1)
	} else {
		d.counters.Compactions.Add(1)
		if c.Reason == compaction.ReasonIdle {
			d.counters.IdleCompactions.Add(1)
			d.counters.IdleCompactionWritten.Add(uint64(info.OutputBytes))
		}
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

// jobEnv returns what flushes and compactions need of the store, whose operands c combines: DB.operands in a store that
// writes, and those of the state that is read in one that follows a writer.
func (d *DB) jobEnv(c operand.Combiner) *job.Env {
	o := &d.opts
	return &job.Env{
		FS: d.fs, Dir: d.dir, Log: d.log, NewNum: d.newFileNum, Tables: &d.tables, Sizes: o.compaction(),
		Format: sstable.WriterOptions{BlockSize: o.BlockSize, IndexPartition: o.IndexPartition, Prefix: o.Prefix,
			PrefixOnly: o.PrefixOnly, Merger: c.Name},
		Filters: o.filterPlan(),
		Values:  d.values, SeparateFrom: max(o.SeparateFrom, 0), MaxMerged: min(c.MaxEntry, o.maxFolded()),
		Merge: c.EntryFunc(), Now: d.clock.now, Rate: &d.compactionRate,
		Stop: func() error {
			if d.closed.Load() {
				return errClosing
			}
			return nil
		},
		Threads: job.Threads{
			Busy: func() int {
				d.mu.Lock()
				defer d.mu.Unlock()
				return d.compactions.BusyThreads()
			},
			Hire: func(maxBusy int) bool {
				d.mu.Lock()
				defer d.mu.Unlock()
				hired := d.compactions.BusyThreads() < maxBusy && d.memory.share.TryThread()
				if hired {
					d.compactions.Helpers++
				}
				return hired
			},
			Dismiss: func() {
				d.reschedule(func() {
					d.compactions.Helpers--
					d.memory.share.ReleaseThread()
				})
			},
		},
	}
}

// compaction returns the options on which the choice of compactions depends.
func (o *Options) compaction() *compaction.Options {
	return &compaction.Options{
		Style:                    compaction.Style(o.Compaction), // they have the same numbers
		RunsPerLevel:             o.RunsPerLevel,
		SpaceAmplification:       o.SpaceAmplification,
		L0CompactionThreshold:    o.L0CompactionThreshold,
		L0SlowdownThreshold:      o.L0SlowdownThreshold,
		L0StopThreshold:          o.L0StopThreshold,
		MaxConcurrentCompactions: o.MaxConcurrentCompactions,
		MemtableSize:             o.MemtableSize,
		BaseLevelSize:            o.BaseLevelSize,
		TargetFileSize:           o.TargetFileSize,
		BlobSpaceLimit:           o.BlobSpace,
		BlobFileSize:             o.harness.BlobSize,
		RangeSize:                o.harness.RangeSize,
		Compression:              o.LevelCompression,
	}
}

// filterPlan returns what the options say of filters.
func (o *Options) filterPlan() *filterbudget.Plan {
	p := &filterbudget.Plan{Point: o.Filter, Ranges: o.RangeFilter, RangesOfLast: o.RangeFilterLastLevel,
		Budget: o.FilterBudget, PrefixOnly: o.PrefixOnly}
	if o.Compaction != Leveled {
		p.RunsPerLevel = o.RunsPerLevel
	}
	if o.Prefix != nil {
		p.Prefix = o.Prefix.Name()
	}
	return p
}

// compactionInput returns what the choice of a compaction of a version depends on. The caller holds d.mu, and has
// called clock.ask before.
func (d *DB) compactionInput(v *version.Version) *compaction.Input {
	return &compaction.Input{
		Options:        *d.opts.compaction(),
		Version:        v,
		Now:            d.clock.last(),
		OldestSnapshot: d.snapshots.oldest(),
		Disk:           d.space.Known(d.cleaner.History),
		BusyThreads:    d.compactions.BusyThreads(),
		State:          &d.compactions.State,
	}
}

// NumLevels is the number of levels: level 0, whose files may overlap, and
// levels 1 to 6, each one sorted run in a leveled store and several in a tiered one.
const NumLevels = manifest.NumLevels

const lastLevel = NumLevels - 1
