package kv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/job"
	"github.com/siftkv/siftkv/internal/version"
)

// compactionState is what d.mu guards about compactions.
type compactionState struct {
	compaction.State
	running      int         // compactions
	inBackground int         // of these, compactions without a caller
	merges       int         // of all, merges that were asked for, which may take all of the store
	helpers      int         // threads that merge a range of a compaction beside its own
	expiry       *time.Timer // looks for tables that have mostly expired
	pausedCompactions
}

// busyThreads returns how many of the threads that compact in the background are taken.
func (s *compactionState) busyThreads() int { return s.inBackground + s.helpers }

// count counts a compaction that begins, or with n = -1 one that ends.
func (s *compactionState) count(c *runningCompaction, n int) {
	s.running += n
	switch {
	case !c.Asked:
		s.inBackground += n
	case !c.Kind.Rules().CollectsBlobs:
		s.merges += n
	}
}

// scheduleCompactions starts compactions as long as there is one worth it and a
// thread for it, of the store's own and of its MemoryBudget's.
func (d *DB) scheduleCompactions() {
	d.askClock()
	d.mu.Lock()
	d.scheduleCompactionsLocked()
	d.mu.Unlock()
}

// scheduleCompactionsLocked is scheduleCompactions for a caller that holds d.mu, and has called askClock before.
func (d *DB) scheduleCompactionsLocked() {
	for !d.closing && !d.opts.ReadOnly && d.current != nil && d.mayCompact() && !d.compactions.paused &&
		d.compactions.busyThreads() < d.opts.MaxConcurrentCompactions && !d.share.Background().Queued() {
		j := compaction.Pick(d.compactionInput(d.current))
		if j == nil {
			if len(d.compactions.Reserved) == 0 {
				d.compactions.cause = nil // there is nothing left to do that failed
			}
			d.wakeAtExpiry()
			return
		}
		if !d.share.Background().Acquire() {
			return
		}
		go d.runCompaction(d.begin(j))
	}
}

// wakeAtExpiry starts a timer for when values that expire may start a compaction: an idle store has nothing else to
// start one. The caller holds d.mu.
func (d *DB) wakeAtExpiry() {
	if wait := d.compactionInput(d.current).UntilGarbage(); wait > 0 {
		restart(&d.compactions.expiry, wait, d.scheduleCompactions)
	}
}

// runCompaction runs a compaction that was picked, and starts what follows from it
// before it stops counting as running: who waits until none runs finds nothing left
// to do. A damaged input is quarantined before others may take it.
func (d *DB) runCompaction(c *runningCompaction) {
	err := d.compact(context.Background(), c)
	d.afterCompaction(c, err, false)
	if err == nil {
		d.mu.Lock()
		d.unpin(c)
		d.mu.Unlock()
		d.afterWork()
	}
	d.reschedule(func() { d.end(c) })
}

// reschedule makes a change that compactions, or writers, may have waited for.
func (d *DB) reschedule(change func()) {
	d.askClock()
	d.mu.Lock()
	change()
	d.scheduleCompactionsLocked()
	if d.current != nil {
		d.noteRoom()
	}
	d.mu.Unlock()
	d.progress.Broadcast()
}

// begin marks the inputs of a job of the current version. From now on writers may be slowed down until it ends. The
// caller holds d.mu.
func (d *DB) begin(j *compaction.Job) *runningCompaction {
	c := &runningCompaction{Compaction: job.Compaction{Job: j, Snapshots: d.snapshots.seqs()}, pinned: true}
	c.Version.Ref()
	for _, t := range c.Tables() {
		t.Compacting = true
	}
	d.compactions.count(c, 1)
	c.reserved = d.compactions.Reserve(c.Output, c.Span)
	d.noteRoom()
	return c
}

// end takes the marks back. The caller holds d.mu.
func (d *DB) end(c *runningCompaction) {
	for _, t := range c.Tables() {
		t.Compacting = false
	}
	d.compactions.count(c, -1)
	d.compactions.Release(c.reserved)
	d.unpin(c)
	d.share.ReleaseThread()
}

// unpin lets files go that a compaction has replaced. The caller holds d.mu.
func (d *DB) unpin(c *runningCompaction) {
	if c.pinned {
		d.unrefVersion(c.Version)
		c.pinned = false
	}
}

// Level 0 is kept short, or writers get an error that says why it is not. Its files are merged with each other when
// they cannot go down. Files that are left alone do not count, and writers do not wait when nothing is going to be
// merged.

// level0Stuck returns why level 0, which is full, does not get shorter: the cause of the
// last failure, or which damaged files keep all that is left in it from being merged. It
// is nil if something is going to be merged. The caller holds d.mu.
func (d *DB) level0Stuck() error {
	s := &d.compactions
	if s.cause != nil {
		return s.cause
	}
	d.scheduleCompactionsLocked()
	if s.running > 0 || len(s.Wanted) > 0 || s.paused || d.share.Background().Pending() {
		return nil
	}
	var damaged []string // in any level: those that overlap level 0 keep it from going down
	d.current.All(func(_ int, t *version.Table) {
		if t.Quarantined {
			damaged = append(damaged, d.tablePath(t.Num))
		}
	})
	if len(damaged) == 0 {
		return errors.New("level 0 is full, and no compaction can shorten it")
	}
	return fmt.Errorf("%w: level 0 is full, and its files cannot be merged because of damaged ones: %s", ErrCorruption,
		strings.Join(damaged, ", "))
}

// level0Over reports whether level 0 has so many runs for compactions to take. The
// caller holds d.mu.
func (d *DB) level0Over(runs int) bool {
	return d.current.NumRuns(0) >= runs && compaction.Level0Backlog(d.current) >= runs
}
