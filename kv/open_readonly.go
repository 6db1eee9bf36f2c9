package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// OpenReadOnly opens a view of a store that may be written meanwhile, by another process or by this one. The view is
// the store as it was at one recent moment: a prefix of its writes. It stays as it is until Refresh is called. Writes
// return ErrReadOnly. Neither side ever waits for the other, and the writer's lock is not taken. Open with
// Options.ReadOnly, in contrast, keeps writers out as long as the store is open.
//
// A view has what the operating system has: every write that has returned, except those with Async, which the writer
// hands over a little later. It may have writes that are not yet on stable storage, and one whose Commit is under way.
// Should its sync fail, the write is undone, and the next view is without it.
//
// The reader registers by a file in the store's directory, and the writer keeps the files that registered readers may
// need. Refresh the view from time to time, or disk space is not freed. The registration ends with Close, or with the
// process. Where the directory cannot be written to, there is no registration. OpenReadOnly and Refresh then open every
// file at once, so that the view stays whole on platforms where an open file may be removed. A read of a view that has
// lost a file all the same returns ErrStale.
//
// Options.RecoveryMode does not matter: a view is what PointInTime would recover.
func OpenReadOnly(dir string, o *Options) (*DB, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.InMemory {
		return nil, fmt.Errorf("%w: InMemory is set, and no other process has that store", ErrInvalidOptions)
	}
	opts.ReadOnly, opts.RecoveryMode = true, PointInTime
	return openStore(context.Background(), dir, &opts, func(d *DB) error {
		d.follower, d.values.Follows = newFollower(d), true
		return d.follower.register()
	})
}

// register tells the writer of a reader, so that it keeps files.
func (f *follower) register() error {
	d := f.d
	d.openFiles.Explain = f.stale // a file may be gone when it is opened again
	if d.opts.Objects != nil {    // the writer keeps files for Objects.Grace, and knows no readers
		d.tables.KeepOpen = true
		return nil
	}
	reg, err := manifest.Register(d.fs, d.dir)
	if err != nil && vfs.IsUnwritable(err) {
		d.log.Info("a reader cannot register, and keeps all files open instead", "dir", d.dir, "error", err)
		d.tables.KeepOpen = true
		return nil
	}
	if err == nil {
		f.reg, d.lock = reg, reg
	}
	return err
}

// Refresh brings the view up to date. Readers see all that changed at once, except open iterators and snapshots, which
// keep what they see. If ctx ends first, the error matches ctx.Err(), and the view is the one that it was; so it is
// after any other error. If the store was not opened by OpenReadOnly, Refresh does nothing: readers always see the
// present.
func (d *DB) Refresh(ctx context.Context) error {
	if d.closed.Load() {
		return ErrClosed
	}
	if d.follower == nil {
		return nil
	}
	return d.follower.refresh(ctx)
}

// WaitForChange refreshes the view now, and then each time that Options.PollInterval has passed, until there are
// writes in it that were not there before the call. It polls: of a directory that costs little, in an object store a
// GET each time. If ctx ends first, the error matches ctx.Err(); if the view is closed, it is ErrClosed, at once. It
// returns at once if the store was not opened by OpenReadOnly.
func (d *DB) WaitForChange(ctx context.Context) error {
	last := func() base.SeqNum {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.limit
	}
	for seen := last(); ; {
		if err := d.Refresh(ctx); err != nil || d.follower == nil || last() != seen {
			return err
		}
		select {
		case <-time.After(d.opts.PollInterval):
		case <-d.follower.closing.Done():
			return ErrClosed
		case <-ctx.Done():
			return base.ContextError(ctx, "waited for a change")
		}
	}
}

// stale adds ErrStale to the error of a view that misses a file.
func (f *follower) stale(err error) error {
	if f != nil && errors.Is(err, fs.ErrNotExist) {
		f.d.objects.lookAgain()
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

// openFile opens a table's file under the bound of MaxOpenFiles. The store's tables stay as long as they are referred
// to, and so can be opened again. Those of a writer that does not know of this follower do not.
func (d *DB) openFile(name string) (vfs.ReadFile, error) {
	if d.opts.Objects != nil { // nothing is open there that could be too much
		f, err := d.objects.dir.Open(name)
		if err != nil || d.follower == nil {
			return f, d.follower.stale(err)
		}
		return followedObject{f, d.follower.stale}, nil
	}
	if d.follower != nil && d.follower.reg == nil {
		f, err := d.fs.Open(name)
		return f, d.follower.stale(err)
	}
	return d.openFiles.Open(d.fs, name)
}

// A followedObject is a file of a view in an object store: it may be gone when it is read.
type followedObject struct {
	vfs.ReadFile
	stale func(error) error
}

func (r followedObject) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReadFile.ReadAt(p, off)
	return n, r.stale(err)
}

// ReadAgain implements vfs.Rereader.
func (r followedObject) ReadAgain(p []byte, off int64) (int, error) {
	n, err := r.ReadFile.(vfs.Rereader).ReadAgain(p, off)
	return n, r.stale(err)
}

// PartSize implements vfs.PartReader.
func (r followedObject) PartSize() int { return r.ReadFile.(vfs.PartReader).PartSize() }
