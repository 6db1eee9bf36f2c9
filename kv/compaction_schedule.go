package kv

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/job"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/vfs"
)

// scheduleCompactions starts compactions as long as there is one worth it and a
// thread for it, of the store's own and of its MemoryBudget's.
func (d *DB) scheduleCompactions() {
	d.clock.ask()
	d.mu.Lock()
	d.scheduleCompactionsLocked()
	d.mu.Unlock()
}

// scheduleCompactionsLocked is scheduleCompactions for a caller that holds d.mu, and has called clock.ask before.
func (d *DB) scheduleCompactionsLocked() {
	s := &d.compactions
	// On a full disk compactions begin between attempts to resume, which need the same room.
	writes := d.failure == nil || d.fullDisk() && !d.flushing
	idle := s.Rest.Take() // for this call only: the store may be busy at the next
	for !d.closing && !d.opts.ReadOnly && d.current != nil && writes && !s.Paused &&
		s.BusyThreads() < d.opts.MaxConcurrentCompactions && !d.memory.share.Background().Queued() {
		in := d.compactionInput(d.current)
		in.Idle, idle = idle, nil
		j := compaction.Pick(in)
		if j == nil {
			if len(s.Reserved) == 0 {
				s.Cause = nil // there is nothing left to do that failed
			}
			if wait := in.UntilGarbage(); wait > 0 { // an idle store has nothing else to start a compaction
				s.WakeAfter(wait)
			}
			s.Rest.Schedule(d.current, time.Now(), s.BusyThreads())
			return
		}
		if !d.memory.share.Background().Acquire() {
			return
		}
		go d.runCompaction(s.Rest.Begin(j), d.begin(j))
	}
}

// lookAtRest begins jobs that are due only while the store is idle, if it is.
func lookAtRest(d *DB) {
	l, s := d.counters.Above(lastLevel)
	reads := compaction.Reads{Denied: l.FilterNegatives, Index: l.IndexLookups, True: l.FilterTruePositives,
		Hits: l.Hits, Blocks: l.BlocksFromDisk + l.BlocksFromCache, FromDisk: l.BlocksFromDisk,
		Visits: s.Empty + s.WithEntries, Scanned: s.BlocksFromDisk}
	free := int64(0) // if other stores of the budget compact, nothing is begun
	if d.memory.share.Quiet() {
		free = vfs.FreeSpace(d.opts.harness.FS, d.dir)
	}
	flushed := int64(d.counters.FlushBytes.Load() + d.counters.IngestedBytes.Load())
	d.reschedule(func() {
		if rest := &d.compactions.Rest; d.flushing || d.ingesting > 0 || d.failure != nil {
			rest.Busy(time.Now())
		} else if d.current != nil {
			rest.Note(d.current, time.Now(), flushed, reads, free)
		}
	})
}

// runCompaction runs a compaction that was picked, and starts what follows from it before it stops counting as running:
// a caller that waits until none runs finds nothing left to do. A damaged input is quarantined before others take it.
func (d *DB) runCompaction(ctx context.Context, c *job.Compaction) {
	if d.compact(ctx, c) == nil {
		d.mu.Lock()
		c.Unpin(d.cleaner.Unref)
		d.mu.Unlock()
		d.afterWork()
	}
	d.reschedule(func() { d.end(c) })
}

// reschedule makes a change that compactions, or writers, may have waited for.
func (d *DB) reschedule(change func()) {
	d.clock.ask()
	d.mu.Lock()
	change()
	d.scheduleCompactionsLocked()
	if d.current != nil {
		d.noteRoom()
	}
	d.mu.Unlock()
	d.progress.Broadcast()
}

// begin begins a job of the current version. Until it ends writers may be slowed down. The caller holds d.mu.
func (d *DB) begin(j *compaction.Job) *job.Compaction {
	d.compactions.Begin(j)
	d.noteRoom()
	return &job.Compaction{Job: j, Snapshots: d.snapshots.seqs()}
}

// end ends a job. The caller holds d.mu.
func (d *DB) end(c *job.Compaction) {
	d.compactions.End(c.Job)
	c.Unpin(d.cleaner.Unref)
	d.memory.share.ReleaseThread()
}

// afterCompaction draws the conclusions from how a compaction ended.
func (d *DB) afterCompaction(c *job.Compaction, err error) {
	_, reading := errors.AsType[job.InputError](err)
	reading = reading && !vfs.IsDenied(err)
	switch {
	case err == nil:
		d.mu.Lock()
		d.compactions.Succeeded(c.Job)
		d.mu.Unlock()
		return
	case errors.Is(err, errClosing), errors.Is(err, base.ErrContextEnded), errors.Is(err, ErrReadOnly):
		return // the caller knows why
	}
	d.counters.FailedCompactions.Add(1) // before anything else tells of it
	unreadable, ofBlob := errors.AsType[*tablemeta.CandidateError](err)
	switch {
	case ofBlob && !vfs.IsDenied(err):
		d.leaveAlone(unreadable.Num, unreadable.Cause, errors.Is(err, ErrCorruption) || errors.Is(err, fs.ErrNotExist))
	case reading && errors.Is(err, ErrCorruption):
		d.quarantine(c, err, true)
	case errors.Is(err, fs.ErrNotExist):
		_ = d.fail(0, compacting, d.objects.explainLoss(err)) // what is written to a directory that is gone is lost
	case !c.Asked:
		d.pauseCompactions(c, err, reading)
	}
	d.progress.Broadcast() // writers may wait for this compaction
}

// pauseCompactions keeps compactions from starting for a while.
func (d *DB) pauseCompactions(c *job.Compaction, err error, reading bool) {
	again, full := d.lacksSpace(err), vfs.IsNoSpace(err)
	d.mu.Lock()
	if full {
		d.compactions.GC.Abandon() // the next batch takes less
	}
	if again {
		d.mu.Unlock()
		return
	}
	wait, damaged := d.compactions.Retry(err, reading)
	d.mu.Unlock()
	d.log.Warn("a compaction failed and changed nothing; it is tried again", "wait", wait, "error", err)
	if full && c.Kind.Rules().CollectsBlobs {
		_ = d.fail(0, compacting, err) // writers are told: they would take the room that is left
	}
	if damaged {
		d.quarantine(c, err, false)
	}
}

// quarantine keeps the inputs of a compaction that could not be read out of later ones, for good or for a while.
func (d *DB) quarantine(c *job.Compaction, err error, forGood bool) {
	var names []string
	tables := c.Unreadable(err, d.tables.Path)
	for _, t := range tables {
		names = append(names, d.tables.Path(t.Num))
	}
	d.mu.Lock()
	d.compactions.Quarantine(d.current, tables, forGood)
	d.mu.Unlock()
	d.log.Error("a compaction could not read its input: the files are left as they are", "files", names, "error", err)
	tell(d, "Quarantined", d.opts.Events.Quarantined, err)
}

// leaveAlone keeps blob GC from a blob file that cannot be read, for good or for a while.
func (d *DB) leaveAlone(num uint64, cause error, forGood bool) {
	d.mu.Lock()
	known := d.compactions.SetAside(d.current, num, forGood)
	d.mu.Unlock()
	if known {
		return
	}
	d.log.Error("a blob file cannot be read: it is left as it is", "file", d.values.Blobs.Path(num), "error", cause)
	tell(d, "Quarantined", d.opts.Events.Quarantined, cause)
}
