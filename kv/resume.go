package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// Resuming writes what the store holds in memory to new files. The memtables have all that was acknowledged. They also
// have the failed commits whose sync failed, in part visible already: these stay. The others never will be visible, and
// are left out. So, in this order,
//
//  1. a manifest that is broken is replaced by a snapshot of the store. The old one
//     may or may not hold the edit that failed. Until the new one is in force all
//     files that either names are kept, so that a crash finds a whole store;
//  2. if the log is broken, a new one is created, written to and synced;
//  3. the memtables become a table of level 0, as far as they are visible. If the log was
//     broken, so does the active one, and the edit that adds the table says that recovery
//     begins at the new log. With it, what a failed commit left in the old log is gone for
//     good. Before it, a crash may bring such a commit back, whole; its writer was told
//     that it failed, not that it never happened;
//  4. writers go on in the new log, with the numbers after those that were given out.
//
// Nothing is written to memtables meanwhile, and nothing becomes visible: commits are refused, and syncs have ended.

// resumeWhenPossible tries until the store has resumed or closes.
func (d *DB) resumeWhenPossible() {
	h := &d.resumer
	for {
		d.mu.Lock()
		h.wait = d.opts.harness.Backoff.After(h.wait)
		wait := h.wait
		d.mu.Unlock()
		select {
		case <-h.stop:
		case <-time.After(wait):
		}
		resumed, err := d.tryToResume()
		d.mu.Lock()
		again := resumed && d.failure != nil // since then: that is left to this goroutine
		if resumed && !again || d.closing || h.broken&fatal != 0 {
			h.running = false
			d.mu.Unlock()
			d.progress.Broadcast()
			return
		}
		d.mu.Unlock()
		if again {
			continue
		}
		d.lacksSpace(err)
		d.log.Warn("the store could not resume", "dir", d.dir, "error", err)
	}
}

// tryToResume makes one attempt. No other goroutine resumes at the same time.
func (d *DB) tryToResume() (resumed bool, err error) {
	d.mu.Lock()
	if d.closing {
		d.mu.Unlock()
		return false, errClosing
	}
	d.resumer.attempts++
	d.mu.Unlock()
	d.counters.ResumeAttempts.Add(1)
	if err := d.resume(true); err != nil {
		return false, err
	}
	d.mu.Lock()
	h := &d.resumer
	if d.failure != nil { // something has failed meanwhile
		d.mu.Unlock()
		return false, errors.New("siftkv: another write has failed")
	}
	info := ResumeInfo{Attempts: h.attempts, Duration: time.Since(h.failedAt)}
	d.mu.Unlock()
	d.progress.Broadcast()
	d.counters.Resumes.Add(1)
	d.log.Info("the store takes writes again", "dir", d.dir, "attempts", info.Attempts, "duration", info.Duration)
	tell(d, "Resumed", d.opts.Events.Resumed, info)
	d.reschedule(d.scheduleFlush)
	return true, nil
}

// endBackground ends all that goes on in the background, attempts to resume included. None of it
// begins again: the store closes.
func (d *DB) endBackground() {
	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	d.progress.Broadcast()
	close(d.resumer.stop)
	d.follower.interrupt()
	d.marks.Stop()
	d.mu.Lock()
	for d.resumer.running {
		d.progress.Wait()
	}
	d.compactions.Stop()
	d.mu.Unlock()
	d.ownership.end()
	d.early.Stop()
	d.logs.Wait(true)
	d.waitForBackground()
}

// resumeAtClose syncs the logs and, if that fails or the store has failed before, makes a last attempt to write down
// what is in memory alone. It is the last: a failure that is left is the error of Close. Logs that are broken are not
// synced, see commit.Pipeline.Fail.
func (d *DB) resumeAtClose() {
	d.endBackground() // what fails in it is taken care of below
	needless := false
	if d.opts.Objects != nil {
		_ = d.commits.Exclusive(context.Background(), func() error {
			needless = d.objects.holdsAll()
			return nil
		})
	}
	if !needless {
		_ = d.commits.Sync() // if it fails, so has the store
	}
	d.mu.Lock()
	failed := d.failure != nil && d.resumer.broken&fatal == 0
	d.mu.Unlock()
	if failed && d.resume(false) == nil {
		d.counters.Resumes.Add(1)
		d.log.Info("what was in memory alone is safe", "dir", d.dir)
	}
	if next := d.resumer.next; next != nil {
		_ = next.CloseFile() // nothing that was written to it was acknowledged
		d.resumer.next = nil
	}
}

// resume goes through the steps, and gives way to a Close if stoppable. A store that was fenced has failed for good.
func (d *DB) resume(stoppable bool) error {
	err := d.restoreWriting(stoppable)
	if errors.Is(err, base.ErrFenced) {
		return d.fail(fatal, "an attempt to write again", err)
	}
	return err
}

func (d *DB) restoreWriting(stoppable bool) error {
	// Commits and syncs that were under way when the store failed have ended after this, and later ones are refused.
	if err := d.commits.Exclusive(context.Background(), func() error { return nil }); err != nil {
		return err
	}
	d.mu.Lock()
	for d.flushing {
		d.progress.Wait()
	}
	d.flushing = true
	d.compactions.Rest.Busy(time.Now())
	for d.fullDisk() && d.compactions.Background > 0 { // it takes the room
		d.progress.Wait()
	}
	broken := d.resumer.broken
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.flushing = false
		d.compactions.Rest.Busy(time.Now())
		d.mu.Unlock()
		d.progress.Broadcast()
		d.scheduleCompactions()
	}()
	if broken&fatal != 0 {
		return d.failedError()
	}
	if err := d.verifyDirectory(); err != nil {
		return err
	}
	if err := d.verifyStoreID(); err != nil {
		return err
	}
	if broken&brokenManifest != 0 {
		d.manifest.Lock()
		d.mu.Lock()
		v := d.current
		d.mu.Unlock()
		err := d.manifest.Replace(v, d.newFileNum())
		if err == nil {
			d.mu.Lock()
			d.resumer.broken &^= brokenManifest
			d.mu.Unlock()
		}
		d.manifest.Unlock()
		if err != nil {
			return err
		}
	}
	return d.saveMemtables(stoppable, broken&brokenLog != 0)
}

// verifyStoreID reports an error if the directory no longer holds this store. If its files were removed or replaced,
// writing to it would save nothing and may hurt another store.
func (d *DB) verifyStoreID() error {
	num, err := manifest.Current(d.fs, d.dir)
	id := uint64(0)
	if err == nil {
		err = manifest.Load(d.fs, d.dir, num, func(e *manifest.Edit) error {
			id = max(id, e.StoreID)
			return nil
		})
	}
	switch {
	case err != nil:
		return err
	case id != d.storeID:
		return fmt.Errorf("%w: %s is another store now", ErrForeignDirectory, d.dir)
	}
	d.mu.Lock()
	v := d.current
	if v == nil {
		d.mu.Unlock()
		return ErrClosed
	}
	v.Ref()
	d.mu.Unlock()
	defer d.cleaner.Unref(v)
	return d.checkFiles(v)
}

// saveMemtables flushes what waits to be flushed, and lets writers go on in the log that
// they have. If the log is broken, it flushes all memtables, and writers go on in a new log.
func (d *DB) saveMemtables(stoppable, newLog bool) error {
	h := &d.resumer
	if newLog {
		d.logs.Drop() // its number is below that of the log that comes
	}
	if newLog && h.next == nil {
		next, err := d.logs.Create(d.newFileNum())
		if err != nil {
			return err
		}
		if err := next.Sync(); err != nil { // its header
			d.logs.Discard(next)
			return err
		}
		h.next = next
	}
	d.mu.Lock()
	job := flushJob{mems: slices.Clone(d.imms), snapshots: d.snapshots.seqs(), stoppable: stoppable, limit: d.seq()}
	if newLog {
		job.mems, job.next = append(job.mems, d.mem), h.next
	}
	d.mu.Unlock()
	if len(job.mems) > 0 {
		// A manifest may name the new log after this: it is kept for the next attempt.
		if err := d.flush(job); err != nil {
			return err
		}
	}
	if !newLog {
		d.clearError(0)
		return nil
	}
	return d.commits.Exclusive(context.Background(), func() error {
		d.values.Commits().Abandon()
		d.commits.ReplaceLogs(h.next)
		h.next = nil
		d.clearError(brokenLog)
		return nil
	})
}

// clearError lets writers go on if nothing but the parts that were replaced is broken.
func (d *DB) clearError(replaced brokenPart) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := &d.resumer
	h.broken &^= replaced
	if h.broken == 0 {
		d.failure = nil
		if d.space.Full() { // blob GC goes on before writers do
			d.compactions.Paused, d.compactions.Cause = false, nil
		}
		h.resumedAt = time.Now()
		h.failed.Store(false)
		d.noteRoom()
	}
}
