package kv

import (
	"context"
	"time"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/job"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
)

// A runningCompaction is a job that has begun.
type runningCompaction struct {
	job.Compaction
	pinned   bool                    // the job's version is referred to
	reserved *compaction.Reservation // of the output
}

// compact runs a compaction and installs its result. It returns errClosing if the
// store closes meanwhile, and base.ErrContextEnded if ctx ends.
func (d *DB) compact(ctx context.Context, c *runningCompaction) error {
	start := time.Now()
	info := CompactionInfo{Reason: c.Reason, Level: c.Level, OutputLevel: c.Output, Moved: c.Kind == compaction.Move}
	for _, t := range c.Tables() {
		info.InputFiles++
		info.InputBytes += t.Size
	}
	e, out, err := c.Do(ctx, d.jobEnv())
	d.countPass(&out.Stats)
	if err != nil {
		return err
	}
	info.OutputFiles, info.OutputBytes = len(out.Tables), out.Bytes()
	info.BlobFiles, info.BlobBytes, info.RelocatedBytes = len(out.Blobs), out.BlobBytes(), int64(out.Relocated)
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

// jobEnv returns what flushes and compactions need of the store.
func (d *DB) jobEnv() *job.Env {
	o := &d.opts
	return &job.Env{
		FS: d.fs, Dir: d.dir, Log: d.log, NewNum: d.newFileNum, Tables: &d.tables, Sizes: o.compaction(),
		Format: sstable.WriterOptions{BlockSize: o.BlockSize, IndexPartition: o.IndexPartition, Prefix: o.Prefix,
			PrefixOnly: o.PrefixOnly, Merger: d.operands.mergerName},
		Filters: o.filterPlan(),
		Values:  d.values, SeparateFrom: max(o.SeparateFrom, 0), MaxMerged: min(d.operands.limit(), o.maxFolded()),
		Merge: d.operands.combiner(), Now: d.now, Stop: d.stopped, Rate: &d.compactionRate,
		Threads: job.Threads{Busy: d.busyThreads, Hire: d.hireHelper, Dismiss: d.dismissHelper},
	}
}

// busyThreads returns how many of the threads that compact in the background are busy.
func (d *DB) busyThreads() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.compactions.busyThreads()
}

// hireHelper takes a thread for a range of a job, if less than maxBusy are busy.
func (d *DB) hireHelper(maxBusy int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.compactions.busyThreads() >= maxBusy || !d.share.TryThread() {
		return false
	}
	d.compactions.helpers++
	return true
}

// dismissHelper returns a thread. What is due comes first.
func (d *DB) dismissHelper() {
	d.reschedule(func() {
		d.compactions.helpers--
		d.share.ReleaseThread()
	})
}

// pressed reports whether compactions must not be held back: level 0 or the blob files slow
// writers down, or the store closes.
func (d *DB) pressed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing || d.underPressure()
}

// NumLevels is the number of levels: level 0, whose files may overlap, and
// levels 1 to 6, each one sorted run in a leveled store and several in a tiered one.
const NumLevels = manifest.NumLevels

const lastLevel = NumLevels - 1
