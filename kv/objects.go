package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/remote"
	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// objectsRoot is the directory that the files of a store seem to be in, in errors and logs.
const objectsRoot = "objects"

// fileSystem returns the file system of a store in an object store, with a cache and logs in dir.
func (o *Options) fileSystem(dir string) vfs.FS {
	cache := o.Objects.CacheSize
	if dir == "" {
		cache = 0
	}
	local := o.fs
	if local == nil {
		local = vfs.OSWithMode(o.FileMode)
	}
	return remote.NewFS(remote.FSOptions{Options: branch.Options{Objects: o.Objects.Store,
		Branch: o.Objects.Branch, Checkpoint: o.Objects.Checkpoint, Grace: branch.Grace(o.Objects.Grace),
		Patience: o.Objects.Patience}, Root: objectsRoot, Local: local, Writes: !o.ReadOnly,
		Logs: remote.LogOptions{Interval: o.Objects.LogInterval, MaxBuffered: o.Objects.LogBuffer,
			Patience: max(o.Objects.Patience, time.Minute), Edits: o.listEdits}, Log: o.Logger,
		Tables:   remote.TableOptions{PartSize: o.partSize, WriteThrough: o.Objects.WriteThrough},
		CacheDir: dir, CacheSize: cache,
		LogDir: dir, LocalLog: o.Objects.LocalLog, AbandonLog: o.Objects.AbandonLog, Place: placeOf(dir)})
}

// closeObjects ends the requests of a store in an object store.
func (d *DB) closeObjects() error {
	if objects, ok := d.opts.fs.(*remote.FS); ok {
		return objects.Close()
	}
	return nil
}

// lookAgain has a view in an object store find the newest list of files, however old the one is that it has.
func (d *DB) lookAgain() {
	if objects, ok := d.opts.fs.(*remote.FS); ok {
		objects.LookAgain()
	}
}

// within makes requests of a view that is being refreshed end with ctx, until end is called.
func (d *DB) within(ctx context.Context) (end func()) {
	if objects, ok := d.opts.fs.(*remote.FS); ok {
		return objects.Within(ctx)
	}
	return func() {}
}

// abortWith makes all requests of a store that is being opened end with ctx, until opened is called. That reports
// whether ctx has not ended them.
func (d *DB) abortWith(ctx context.Context) (opened func() bool) {
	if objects, ok := d.opts.fs.(*remote.FS); ok {
		return context.AfterFunc(ctx, objects.Abort)
	}
	return func() bool { return true }
}

// inFiles reports whether a store in an object store has all writes in sorted files, and nothing in its log. Then the
// log need not be ended to say that nothing is missing: the manifest says it.
func (d *DB) inFiles() bool {
	if d.opts.Objects == nil || d.opts.ReadOnly || d.seq() == 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	log := d.commits.Log()
	return log != nil && log.Empty() && len(d.imms) == 0 && d.mem.Empty()
}

// unchanged reports whether a store in an object store is as it was when it was opened: it can be left so.
func (d *DB) unchanged() bool {
	objects, ok := d.opts.fs.(*remote.FS)
	return ok && objects.Unchanged()
}

// explainLoss returns why a file is not there: in an object store, a writer that has taken over may have deleted it.
func (d *DB) explainLoss(err error) error {
	if objects, ok := d.opts.fs.(*remote.FS); ok {
		if fenced := objects.Overtaken(); fenced != nil {
			return fmt.Errorf("%w; %w", fenced, err)
		}
	}
	return err
}

// interruptRefresh ends the requests of a view that is being refreshed, for Close not to wait for them.
func (d *DB) interruptRefresh() {
	if objects, ok := d.opts.fs.(*remote.FS); ok && d.follower != nil {
		objects.Interrupt()
	}
}

// checkObjects refuses options that a store in an object store cannot have.
func (o *Options) checkObjects() error {
	switch {
	case o.Objects == nil:
		return nil
	case o.Objects.Store == nil:
		return invalidf("Objects.Store is nil")
	case o.Objects.Checkpoint != "" && !o.ReadOnly:
		return invalidf("Objects.Checkpoint is %q, and a checkpoint does not change: OpenReadOnly reads it, and "+
			"a Clone of it can be written to", o.Objects.Checkpoint)
	case o.InMemory:
		return invalidf("InMemory and Objects are both set")
	case o.MemoryMap:
		return invalidf("MemoryMap and Objects are both set: objects cannot be mapped")
	case o.Objects.CacheSize < 0:
		return invalidf("Objects.CacheSize is %d: want a number of bytes, or 0 for none", o.Objects.CacheSize)
	case o.Objects.Patience < 0:
		return invalidf("Objects.Patience is negative")
	case o.Objects.MaxStaleness < 0:
		return invalidf("Objects.MaxStaleness is negative")
	case o.Objects.LogInterval < 0 || o.Objects.LogBuffer < 0:
		return invalidf("Objects.LogInterval or Objects.LogBuffer is negative")
	}
	return nil
}

// maxPublishedManifest is maxManifestSize where the whole manifest is written with each edit.
const maxPublishedManifest = 256 << 10

// openTables opens the files that a version has and the one before has not, side by side: in an object
// store each table costs a request.
func (d *DB) openTables(v *version.Version) error {
	tables, blobs := v.Come(), v.ComeBlobs()
	errs := make([]error, len(tables)+len(blobs))
	sideBySide(len(errs), func(i int) {
		if i < len(tables) {
			_, errs[i] = tables[i].Open(&d.tables)
		} else {
			_, errs[i] = blobs[i-len(tables)].Open(&d.values.Blobs)
		}
	})
	return errors.Join(errs...)
}

// sideBySide is callback.Parallel for requests.
func sideBySide(n int, do func(i int)) { callback.Parallel(n, values.MaxRequests, do) }

// checkConditions refuses an object store in which two writers could both win.
func checkConditions(ctx context.Context, s objstore.Store) error {
	if err := objstore.CheckConditional(ctx, s, "check/"); err != nil {
		return fmt.Errorf("siftkv: the object store cannot hold a store: %w", err)
	}
	return nil
}

// PinCheckpoint is that of objects.Config for the branch that is open. The checkpoint has what was written to this DB
// before the call: it is flushed first. For a view of OpenReadOnly the checkpoint is what the branch is now, not what
// the view was. Refresh shows whether that is the same.
//
// The error matches ErrInvalidOptions if the store is in no object store; Checkpoint copies such a store.
func (d *DB) PinCheckpoint(ctx context.Context, name string) (objects.CheckpointInfo, error) {
	o, err := d.branchObjects()
	if err == nil && !d.opts.ReadOnly {
		err = d.Flush(ctx)
	}
	if err != nil {
		return objects.CheckpointInfo{}, err
	}
	return o.PinCheckpoint(ctx, name)
}

// DropCheckpoint is that of objects.Config for the branch that is open. If this DB writes to it, files that
// nothing else needs are deleted after Objects.Grace.
func (d *DB) DropCheckpoint(ctx context.Context, name string) error {
	o, err := d.branchObjects()
	if err == nil {
		err = o.DropCheckpoint(ctx, name)
	}
	if objects, ok := d.opts.fs.(*remote.FS); ok && err == nil {
		objects.CollectAgain()
	}
	return err
}

// branchObjects returns the settings of a store in an object store that is open.
func (d *DB) branchObjects() (*objects.Config, error) {
	if d.closed.Load() {
		return nil, ErrClosed
	}
	if d.opts.Objects == nil {
		return nil, invalidf("the store is in no object store: Checkpoint makes one in a directory")
	}
	return d.opts.Objects, nil
}

// Each entry of the log in an object store is a request when the store is opened. So a memtable is flushed when its log
// has many entries, however small it is, and earlier once the store is at rest.

// watchLongLogs has the active memtable flushed when its log has many entries in an object store.
func (d *DB) watchLongLogs() {
	if objects, ok := d.opts.fs.(*remote.FS); ok {
		objects.WatchLogs(d.flushLongLog)
	}
}

// flushLongLog begins to flush the active memtable if it still has this log. It does not where level 0 would make
// writers wait: the log is reported again.
func (d *DB) flushLongLog(log uint64) {
	if !d.early.Begin() {
		return
	}
	go d.early.Run(func() {
		d.mu.Lock()
		crowded := d.current.NumRuns(0) >= d.opts.L0SlowdownThreshold
		d.mu.Unlock()
		if crowded {
			return
		}
		if err := d.flushEarly(log); err != nil {
			d.log.Debug("a memtable with a long log was not flushed", "error", err)
		}
	})
}

// logEntries returns the number of entries that a log has in an object store.
func (d *DB) logEntries(log uint64) int {
	if objects, ok := d.opts.fs.(*remote.FS); ok {
		return objects.LogEntries(log)
	}
	return 0
}
