package kv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/cursor"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/nextlog"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Open opens the store in dir, and creates it if the directory is empty or not there. The store is locked: a second
// Open, from this process or another, fails with ErrLocked. A directory that holds other files and no store is refused,
// and so is a store that a newer version of this package wrote; neither is touched. A nil o is all defaults.
//
// The store stays with the directory that was opened: it keeps the directory open, and touches nothing else, should
// another take its place. It takes no more writes once it notices, by an error that matches ErrDirectoryMoved. A
// relative dir is resolved once: a later os.Chdir does not move the store.
func Open(dir string, o *Options) (*DB, error) {
	return openStore(context.Background(), dir, o, (*DB).tryLock)
}

// openStore opens a store that it locks by takeLock, which finds the directory
// there if it may be created. In an object store, requests end with ctx.
func openStore(ctx context.Context, dir string, o *Options, takeLock func(*DB) error) (*DB, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if dir, err = vfs.Absolute(opts.harness.FS, dir); err != nil {
		return nil, err
	}
	opts.stored = o.storedText(&opts)
	objects, err := newObjectStore(&opts, dir)
	if err != nil {
		return nil, err
	}
	if objects != nil {
		dir = objectdir.Root
	}
	if dir == "" && !opts.InMemory {
		return nil, fmt.Errorf("%w: the directory's name is empty", ErrInvalidOptions)
	}
	d := &DB{opts: opts, log: opts.Logger, guarded: guarded{limit: base.MaxSeqNum},
		place:  place{dir: dir, objects: objects, openFiles: vfs.NewReadLimit(opts.MaxOpenFiles)},
		ending: ending{isClosed: make(chan struct{})}}
	d.clock.of, d.clock.system, d.clock.log = d.opts.Clock, o == nil || o.Clock == nil, d.log
	if err := d.shareMemory(); err != nil {
		return nil, errors.Join(err, d.objects.close())
	}
	if d.directory, err = d.opts.openDirectory(dir); err != nil {
		d.memory.share.Leave()
		return nil, errors.Join(err, d.objects.close())
	}
	d.fs = d.openFiles.Relieve(d.opts.harness.FS)
	if objects != nil {
		objects.d, d.fs = d, d.openFiles.Relieve(objects.dir)
	}
	d.progress.L = &d.mu
	d.present = readView{d: d, at: base.MaxSeqNum}
	d.clock.ask()
	d.resumer.stop = make(chan struct{})
	d.space.Init(d.fs, dir, d.log)
	connectParts(d)
	d.cleaner.Start()
	opened := d.objects.closeWith(ctx)
	returned := false
	defer func() {
		if !returned { // a function of the application panicked, or called runtime.Goexit
			_ = d.abandon()
		}
	}()
	err = d.open(ctx, takeLock)
	returned = true
	if !opened() && ctx.Err() != nil {
		err = errors.Join(base.ContextError(ctx, "the store was not opened"), err)
	}
	if err != nil {
		return nil, errors.Join(err, d.abandon())
	}
	if !d.opts.ReadOnly {
		d.memory.share.Begin()
	}
	return d, nil
}

// connectParts gives the parts of a store what they need of its options and of each other.
func connectParts(d *DB) {
	d.tables = tablecache.Cache{Path: func(num uint64) string { return manifest.Path(d.dir, manifest.FileTable, num) },
		OpenFile: d.openFile, Log: d.log, Memory: d.memory.tables, Far: d.opts.Objects != nil,
		FalsePositives: d.memory.falsePositives,
		Options: sstable.ReaderOptions{Hint: d.opts.hint(d.dir), Cache: d.memory.cache, Owner: d.memory.share.Owner(),
			Filter: d.opts.Filter, Prefix: d.opts.Prefix, RangeFilter: d.opts.RangeFilter, Map: d.opts.MemoryMap,
			AnyExpansion: true}}
	d.values = values.New(d.valuesConfig())
	d.tables.Parts.Limit = d.opts.partsLimit()
	if d.memory.share != nil {
		d.tables.Parts.Of = d.opts.MemoryBudget.memory.Parts()
	}
	d.compactionRate.Rate, d.compactionRate.Pressed = d.opts.CompactionRate, d.slowsWriters
	d.compactions.Backoff, d.compactions.Change = d.opts.harness.Backoff, d.reschedule
	d.compactions.Rest.After, d.compactions.Rest.Look = d.opts.IdleCompaction, func() { lookAtRest(d) }
	if d.opts.LatencyHistograms {
		d.counters.Latencies = counters.NewLatencies()
	}
	if size := d.opts.LookupSample; size > 0 {
		d.watch.StartSample(size, max(d.opts.CacheSize, 0)/int64(d.opts.BlockSize), d.counters.Gets)
	}
	d.cursors = cursor.Env{Tables: &d.tables, Values: d.values, Counters: &d.counters, Watch: &d.watch,
		Prefix: d.opts.Prefix, Now: d.clock.now, Closed: &d.closed}
	d.commits.Attach(d.commitStore())
	d.early.Attach(d.measureMemtable, d.examineMemtable)
	d.logs = nextlog.Source{FS: d.fs, Dir: d.dir, Logger: d.log, NewNum: d.newFileNum, Check: d.verifyDirectory,
		Memtable: func(log uint64) *memTable {
			d.mu.Lock()
			full := len(d.imms)+2 > d.opts.MaxMemtables
			d.mu.Unlock()
			if full {
				return nil
			}
			return d.nextMemTable(0, log)
		}}
	m := &d.manifest
	m.FS, m.Dir, m.Logger, m.Cleaner, m.MaxSize = d.fs, d.dir, d.log, &d.cleaner, d.opts.harness.MaxManifestSize
	m.NewNum, m.Check, m.Again = d.newFileNum, d.verifyDirectory, d.lacksSpace
	m.Describe = func(v *version.Version) *manifest.Edit {
		e := d.snapshotEdit(v)
		d.slots.Describe(e)
		return e
	}
	m.Retained = func(blob uint64) bool { return d.values.File(blob) != nil }
	d.slots.FS, d.slots.Dir, d.slots.Remote, d.slots.Logger, d.slots.Last = d.fs, d.dir, d.objects != nil, d.log, d.seq
	if d.objects != nil {
		d.slots.Positions = d.objects.dir.Positions
	}
	connectMarker(d)
	d.slots.Unneeded = func(parts []manifest.KeptPart) {
		dropCopies(d, parts) // the others were handed in when they were obsolete
		d.cleaner.LookAgain()
	}
	d.slots.MaxBytes, d.slots.MaxAge, d.slots.Now = d.opts.MaxSlotBytes, d.opts.MaxSlotAge, time.Now
	d.slots.Trim = func() error {
		return d.applyEdit(func() *manifest.Edit { return &manifest.Edit{} }, func() {})
	}
	d.cleaner = version.Cleaner{Tables: &d.tables, Blobs: &d.values.Blobs, History: new(version.History),
		FS: d.fs, Dir: d.dir, Log: d.log, ReadOnly: d.opts.ReadOnly, Keeps: d.slots.Keeps,
		Position: d.manifest.Position,
		Cleaned: func() { // the writer learns which files a view still needs
			if err := d.follower.publishPosition(); err != nil {
				d.log.Warn("the writer keeps more files than this reader needs", "dir", d.dir, "error", err)
			}
		}}
}

// valuesConfig returns what the store's blob values need of it.
func (d *DB) valuesConfig() values.Config {
	logFile := min(maxLogFile, d.opts.MemtableSize)
	if d.opts.harness.BlobSize > 0 {
		logFile = min(logFile, d.opts.harness.BlobSize)
	}
	return values.Config{FS: d.fs, Dir: d.dir, NewNum: d.newFileNum, Cleaner: &d.cleaner, Log: d.log,
		Blobs: version.BlobCache{Path: func(num uint64) string { return manifest.Path(d.dir, manifest.FileBlob, num) },
			OpenFile: d.openFile, Hint: d.opts.hint(d.dir),
			Values: blob.Cache{Blocks: d.memory.cache, Owner: d.memory.share.Owner(), AtOnce: d.opts.Objects != nil}},
		SeparateFrom: d.opts.SeparateFrom, MaxLogFile: logFile, Fail: d.commits.Fail}
}

// maxLogFile bounds the size in bytes at which a log with large values is followed by the next: recovery copies what is
// in the log's blob file.
const maxLogFile = 64 << 20

// A LockedError says who has a store open: the lock file, and the holder's process
// id where it is known. It matches ErrLocked.
type LockedError = vfs.LockedError

// Waits for a lock start with firstLockWait and double up to lastLockWait. Asking
// whether a lock is free costs a few microseconds.
const (
	firstLockWait = time.Millisecond
	lastLockWait  = 100 * time.Millisecond
)

// OpenContext is Open that waits while the store is open elsewhere, until the lock is free or ctx ends. The error then
// matches ErrLocked and ctx.Err(), and has a *LockedError that names the holder. Several that wait for one lock get it
// in no particular order. In an object store there is no lock to wait for, except that of the directory with the log
// (Objects.LocalLog). Requests that are under way end with ctx.
func OpenContext(ctx context.Context, dir string, o *Options) (*DB, error) {
	if ctx.Err() != nil {
		return nil, base.ContextError(ctx, "the store was not opened")
	}
	return openStore(ctx, dir, o, func(d *DB) error { return waitLock(ctx, d.tryLock) })
}

// waitLock tries to lock a directory until it can, or ctx ends.
func waitLock(ctx context.Context, try func() error) error {
	for wait := firstLockWait; ; wait = min(2*wait, lastLockWait) {
		err := try()
		if !errors.Is(err, ErrLocked) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", base.ContextError(ctx, "waited for the store's lock"), err)
		}
	}
}

// abandon releases what a failed open holds. The store may work already, if its context has ended with the last
// request. It is not an error of its own if something could not be written.
func (d *DB) abandon() error {
	d.closed.Store(true)
	defer close(d.isClosed)
	d.endBackground()
	d.cleaner.Stop()
	err := errors.Join(d.slots.Release(), d.commits.Abandon(), d.follower.close(), d.values.Close())
	d.logs.Take().Mem.Drop() // the log stays for the next Open to remove
	return d.releaseAll(err, func(err error) error {
		if d.manifest.Log != nil {
			err = errors.Join(err, d.manifest.Close())
		}
		return err
	})
}

func (d *DB) open(ctx context.Context, takeLock func(*DB) error) error {
	exists, err := d.opts.examine(d.fs, d.dir)
	if err != nil {
		return err
	}
	switch {
	case exists || d.opts.ReadOnly:
	case d.opts.Objects != nil:
		err = d.objects.CheckStore(ctx)
	default:
		err = vfs.MkdirAllDurable(d.fs, d.dir)
	}
	if err != nil {
		return err
	}
	if err := takeLock(d); err != nil {
		return err
	}
	if d.follower != nil {
		return d.follower.begin(ctx)
	}
	if !exists {
		// Another Open may have created a store before the lock was ours.
		if exists, err = d.opts.examine(d.fs, d.dir); err != nil {
			return err
		}
	}
	if !exists {
		err = d.create()
	} else {
		err = d.recover()
	}
	if err == nil && d.opts.Objects == nil {
		d.opts.save(d.fs, d.dir)
	}
	if err == nil {
		err = d.beginOwnership(ctx)
	}
	return err
}

// tryLock locks the directory, or fails with ErrLocked at once. A directory that was moved meanwhile is not worth
// waiting for.
func (d *DB) tryLock() (err error) {
	mode := vfs.Exclusive
	if d.opts.ReadOnly {
		mode = vfs.Shared
	}
	d.lock, err = d.fs.Lock(filepath.Join(d.dir, manifest.LockName), mode)
	if moved := d.directory.Check(); moved != nil {
		return fmt.Errorf("%w; open it again", moved)
	}
	return err
}

// examine reports whether a directory holds a store. It changes nothing, and
// refuses a directory that is another program's.
func (o *Options) examine(fsys vfs.FS, dir string) (exists bool, err error) {
	exists, err = survey.Exists(fsys, dir, o.Objects != nil)
	if err == nil && !exists && o.ReadOnly {
		err = fmt.Errorf("%w in %s, and a read-only open does not create one", ErrNotExist, dir)
	}
	return exists, err
}

// create makes a new store.
func (d *DB) create() (err error) {
	d.storeID = rand.Uint64() | 1
	d.nextFile.Store(manifest.First)
	if d.operands, err = d.opts.combiner(0, "", d.dir); err != nil {
		return err
	}
	return d.start(&version.Version{}, 0)
}

// start puts the store to work on a version: a new manifest, a new WAL, an empty
// memtable. The WAL comes last: a directory without CURRENT never holds one.
func (d *DB) start(v *version.Version, lastSeq base.SeqNum) error {
	d.visible.Store(uint64(lastSeq))
	num := d.newFileNum()
	d.logNum = d.newFileNum()
	d.features = v.Features()
	d.manifest.Lock() // the cleaner may be closing what recovery did not need
	err := d.manifest.Replace(v, num)
	d.manifest.Unlock()
	if err != nil {
		return err
	}
	log, err := d.logs.Create(d.logNum)
	if err != nil {
		return err
	}
	d.commits.Start(lastSeq, log, d.features)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mem = d.nextMemTable(0, log.ID())
	d.installVersion(v)
	d.installState()
	d.compactions.Rest.Opened(v, time.Now())
	return nil
}

// hint is the command that errors about damage tell the user to run.
func (o *Options) hint(dir string) string {
	if o.Objects != nil {
		return "siftkv verify URL; for S3 that is github.com/siftkv/siftkv/objstore/s3/cmd/siftkv"
	}
	return "siftkv verify " + dir
}
