package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// When a write to disk fails, the store takes no more writes: writers get an error that matches ErrReadOnly and wraps
// the cause, and reads go on. Then it tries, with back-off, to write everything that it holds in memory to where it is
// safe, and takes writes again once that has worked (see resume.go).
//
// A file whose write or sync failed is never written again. After a failed sync the operating system may have dropped
// the bytes, and report the next sync as a success. See Rebello et al., "Can Applications Recover from fsync
// Failures?", USENIX ATC 2020.

// brokenPart is a set of what must be replaced before the store can write again.
type brokenPart uint8

const (
	brokenLog      brokenPart = 1 << iota // the WAL: what it holds after the last sync is not known
	brokenManifest                        // the manifest: whether its last edit is there is not known
	fatal                                 // the program: only a new start helps
)

// A resumer is the state of a store that has failed.
type resumer struct {
	failed atomic.Bool   // DB.failure is set: writers need not ask with the lock
	stop   chan struct{} // closed when the store closes

	// Guarded by DB.mu.
	broken    brokenPart
	running   bool // the goroutine
	attempts  int  // since the store failed
	wait      time.Duration
	failedAt  time.Time
	resumedAt time.Time

	// Owned by the goroutine that resumes, or Close.
	next *wal.Writer // a WAL that is ready to follow a broken one
}

var defaultBackoff = compaction.Backoff{First: 100 * time.Millisecond, Max: 10 * time.Second}

// What a failed store could not do, in its error.
const (
	writingManifest = "writing the manifest"
	compacting      = "a compaction"
)

// fail makes the store read-only; reads go on. It notes which parts are broken, and
// returns the error that writers get from now on, which names what could not be
// done. Of several failures the first is reported, unless a later one is fatal.
func (d *DB) fail(broken brokenPart, what string, err error) error {
	if errors.Is(err, base.ErrFenced) {
		broken |= fatal // another writer has the store now
	}
	d.lacksSpace(err)
	d.mu.Lock()
	h := &d.resumer
	first := d.failure == nil
	worse := !first && broken&^h.broken&fatal != 0
	h.broken |= broken
	if first || worse {
		d.failure = d.describeFailure(what, err)
		h.failed.Store(true)
		d.noteRoom()
	}
	if d.ownership != nil && errors.Is(err, base.ErrFenced) { // reads must not be stale
		d.refusal.refuse(&d.state, fmt.Errorf("%w; %s", err, fencedAdvice))
	}
	if first {
		h.attempts, h.failedAt = 0, time.Now()
		if h.failedAt.Sub(h.resumedAt) > d.opts.harness.Backoff.Max {
			h.wait = 0 // a new failure, not the last one again
		}
		d.counters.Failures.Add(1)
		if !h.running && !d.closing && h.broken&fatal == 0 {
			h.running = true
			go d.resumeWhenPossible()
		}
	}
	failure := d.failure
	d.mu.Unlock()
	d.progress.Broadcast()
	d.scheduleCompactions() // a full disk does not keep them from going on
	if first || worse {
		d.log.Error("the store takes no writes", "dir", d.dir, "error", failure)
		tell(d, "Failed", d.opts.Events.Failed, failure)
	}
	return failure
}

// describeFailure makes the error that writers get: what failed, why, and what to do about it. The caller holds d.mu.
func (d *DB) describeFailure(what string, err error) error {
	const again = "the store then takes writes again by itself"
	target := d.objects.writtenTo(d.dir)
	advice := "the store tries again by itself, and takes writes as soon as that works; if it does not, check "
	switch {
	case errors.Is(err, base.ErrFenced):
		advice = fencedAdvice
	case d.resumer.broken&fatal != 0:
		advice = "close the store and open it again"
	case vfs.IsNoSpace(err):
		advice = fmt.Sprintf("free space on the file system of %s; %s", target, again)
	case errors.Is(err, ErrDirectoryMoved):
		advice = fmt.Sprintf("move the store's directory back to %s, and %s; or close the store, and open what is "+
			"there now: what was written is in the directory that was moved", d.objects.directory(d.dir), again)
	case errors.Is(err, fs.ErrNotExist):
		advice = fmt.Sprintf("%s or files in it were removed: put them back, and %s", target, again)
	case errors.Is(err, ErrCorruption) && d.opts.Objects != nil:
		advice = "close the store, and repair it or restore a backup: siftkv repair URL --out DIR"
	case errors.Is(err, ErrCorruption):
		advice = "close the store, and repair it or restore a backup: siftkv repair " + d.dir
	case errors.Is(err, fs.ErrPermission):
		advice = fmt.Sprintf("let this process write to %s; %s", target, again)
	case d.opts.Objects == nil:
		advice += "the disk of " + d.dir
	default:
		advice += target
	}
	return fmt.Errorf("%w since %s failed: %w; %s", ErrReadOnly, what, err, advice)
}

const fencedAdvice = "close the store: another process writes to it now"

// failedError returns why the store takes no writes, or nil.
func (d *DB) failedError() error {
	if !d.resumer.failed.Load() {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failure
}
