package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/replay"
)

// An objectStore is the part of a store in an object store: its directory, and what depends on that. It is nil for a
// store in a directory on the disk.
type objectStore struct {
	*objectdir.Ops
	d        *DB
	dir      objectdir.Directory
	localDir string // on the local disk, for a cache and a log; empty: there is none
}

// checkObjects refuses options that a store in an object store cannot have.
func (o *Options) checkObjects() error {
	switch ops := o.objects; {
	case ops == nil:
		return nil
	case ops.Invalid != nil:
		return ops.Invalid
	case ops.Checkpoint != "" && !o.ReadOnly:
		return invalidf("Objects.Checkpoint is %q, and a checkpoint does not change: OpenReadOnly reads it, and "+
			"a Clone of it can be written to", ops.Checkpoint)
	case o.InMemory:
		return invalidf("InMemory and Objects are both set")
	case o.MemoryMap:
		return invalidf("MemoryMap and Objects are both set: objects cannot be mapped")
	}
	return nil
}

// objectParams returns what opens the directory of a store in an object store.
func (o *Options) objectParams() objectdir.Params {
	p := objectdir.Params{Writes: !o.ReadOnly, Local: o.harness.FS, Log: o.Logger}
	if o.harness.TuneObjects != nil {
		o.harness.TuneObjects(&p)
	}
	return p
}

// newObjectStore returns the object store of a store with these options, nil if they have none. The cache and the log
// are in dir.
func newObjectStore(opts *Options, dir string) (*objectStore, error) {
	if opts.objects == nil {
		return nil, nil
	}
	o := &objectStore{Ops: opts.objects, localDir: dir}
	p := opts.objectParams()
	p.Dir, p.LongLog, p.KeepLogs = dir, o.flushLongLog, func() bool { return o.d.slots.Active() }
	var err error
	o.dir, err = o.Open(p)
	return o, err
}

// another returns a directory that is as new as its caller has read, whatever the view is. It sends no request.
func (o *objectStore) another() (objectdir.Directory, error) {
	p := o.d.opts.objectParams()
	p.Transfer = true // the cache is the view's
	return o.Open(p)
}

// close ends all requests.
func (o *objectStore) close() error {
	if o == nil {
		return nil
	}
	return o.dir.Close()
}

// closeWith makes all requests end with ctx, until stop is called. That reports whether ctx has not ended them.
func (o *objectStore) closeWith(ctx context.Context) (stop func() bool) {
	if o == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { _ = o.dir.Close() }) // it is closed again
}

// within makes requests of a view that is being refreshed end with ctx, and when the view closes, until end is called.
// Those that are under way then go on: readers see the new view by then, and its files were opened meanwhile.
func (o *objectStore) within(ctx, closing context.Context) (end func()) {
	if o == nil {
		return func() {}
	}
	either, cancel := context.WithCancel(context.WithoutCancel(ctx)) // nothing holds it when it is not cancelled
	within, ended, closed := o.dir.Within(either), context.AfterFunc(ctx, cancel), context.AfterFunc(closing, cancel)
	return func() {
		within()
		ended()
		closed()
	}
}

// lookAgain has a view find the newest list of files, however old the one is that it has.
func (o *objectStore) lookAgain() {
	if o != nil {
		o.dir.LookAgain()
	}
}

// holdsAll reports whether all writes are in sorted files, and nothing is in the log. Then the log need not be ended to
// say that nothing is missing: the manifest says it.
func (o *objectStore) holdsAll() bool {
	if o == nil || o.d.opts.ReadOnly || o.d.seq() == 0 {
		return false
	}
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	log := o.d.commits.Log()
	return log != nil && log.Empty() && len(o.d.imms) == 0 && o.d.mem.Empty()
}

// finish prepares the end of the manifest, and reports whether it needs none: the store is as it was when it was
// opened.
func (o *objectStore) finish() (unchanged bool) { return o != nil && o.dir.Finish() }

// lossPatience bounds how long a store asks whether another writer has taken over.
const lossPatience = time.Minute

// explainLoss returns why a file is not there, given the error that says so.
func (o *objectStore) explainLoss(err error) error {
	if fenced := o.overtaken(); fenced != nil {
		return fmt.Errorf("%w; %w", fenced, err)
	}
	return err
}

// overtaken returns an error if another writer has taken over, which may have deleted files.
func (o *objectStore) overtaken() error {
	if o == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lossPatience)
	defer cancel()
	if fenced := o.dir.Confirm(ctx); errors.Is(fenced, base.ErrFenced) {
		return fenced
	}
	return nil
}

// localLog reports whether this is a writer whose log is on the local disk.
func (o *objectStore) localLog() bool { return o != nil && o.LocalLog && !o.d.opts.ReadOnly }

// writtenTo names where a failed write may have been for: the directory dir of a store on the disk, the object store,
// or one of the two.
func (o *objectStore) writtenTo(dir string) string {
	switch {
	case o == nil:
		return dir
	case o.localLog():
		return o.localDir + " or the object store"
	}
	return "the object store"
}

// directory names the directory on the disk: dir is that of a store without an object store.
func (o *objectStore) directory(dir string) string {
	if o == nil {
		return dir
	}
	return o.localDir
}

// flushLog has the store need no log on the local disk: it flushes what is in memory, and the end of the manifest says
// so. All writes have ended, and the logs are closed. If that fails, the log stays what it is: the store goes on from
// it, on this machine.
func (o *objectStore) flushLog() error {
	if !o.localLog() || o.d.manifest.Log == nil {
		return nil
	}
	d := o.d
	d.mu.Lock()
	mems := append(slices.Clone(d.imms), d.mem)
	empty := !slices.ContainsFunc(mems, func(m *memTable) bool { return !m.Empty() })
	job := flushJob{mems: mems, snapshots: d.snapshots.seqs(), limit: d.seq()}
	d.mu.Unlock()
	if empty {
		return nil
	}
	next, err := d.logs.Create(d.newFileNum()) // from which the store would go on if the end were missing
	if err == nil {
		job.next = next
		err = errors.Join(d.flush(job), next.CloseFile())
	}
	if err != nil {
		return fmt.Errorf("what was written since the last flush is in the log in %s, and needed there: %w",
			o.localDir, err)
	}
	return nil
}

// reportLostLogs reports the logs that were given up for the sake of Objects.AbandonLog. It returns those that the
// local disk must have and has not.
func (o *objectStore) reportLostLogs() map[uint64]replay.Dropped {
	missing := map[uint64]replay.Dropped{}
	for _, l := range o.dir.LostLogs() {
		lost := replay.Dropped{File: l.File, Bytes: l.Bytes, Reason: l.Reason}
		if l.Num == 0 {
			o.d.reportDropped(DroppedInfo(lost))
		} else {
			missing[l.Num] = lost
		}
	}
	return missing
}

// abandonedLog reports whether a log was given up for the sake of Objects.AbandonLog.
func (o *objectStore) abandonedLog() bool {
	return o != nil && slices.ContainsFunc(o.dir.LostLogs(), func(l objectdir.LostLog) bool { return l.Abandoned })
}

// Each entry of the log in an object store is a request when the store is opened. So a memtable is flushed when its log
// has many entries, however small it is, and earlier once the store is at rest.

// flushLongLog begins to flush the active memtable if it still has this log. It does not where level 0 would make
// writers wait: the log is reported again.
func (o *objectStore) flushLongLog(log uint64) {
	d := o.d
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
func (o *objectStore) logEntries(log uint64) int {
	if o == nil {
		return 0
	}
	return o.dir.LogEntries(log)
}

// maxPublishedManifest is maxManifestSize where the whole manifest is written with each edit.
const maxPublishedManifest = 256 << 10

// PinCheckpoint is that of objects.Config for the branch that is open. The checkpoint has what was written to this DB
// before the call: it is flushed first. For a view of OpenReadOnly the checkpoint is what the branch is now, not what
// the view was. Refresh shows whether that is the same.
//
// The error matches ErrInvalidOptions if the store is in no object store; Checkpoint copies such a store.
func (d *DB) PinCheckpoint(ctx context.Context, name string) (objectdir.Checkpoint, error) {
	err := d.checkBranch()
	if err == nil && !d.opts.ReadOnly {
		err = d.Flush(ctx)
	}
	if err != nil {
		return objectdir.Checkpoint{}, err
	}
	return d.objects.dir.PinCheckpoint(ctx, name)
}

// DropCheckpoint is that of objects.Config for the branch that is open. If this DB writes to it, files that
// nothing else needs are deleted after Objects.Grace.
func (d *DB) DropCheckpoint(ctx context.Context, name string) error {
	if err := d.checkBranch(); err != nil {
		return err
	}
	return d.objects.dir.DropCheckpoint(ctx, name)
}

// checkBranch returns an error if no branch of a store in an object store is open.
func (d *DB) checkBranch() error {
	if d.closed.Load() {
		return ErrClosed
	}
	if d.objects == nil {
		return invalidf("the store is in no object store: Checkpoint makes one in a directory")
	}
	return nil
}
