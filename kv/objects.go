package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/remote"
	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/remote/locallog"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
)

// Objects are the settings of a store that lives in an object store: Options.Objects.
//
// Sorted files and blob files are objects, and so are lists of them and what was added to the log. A write with Sync
// returns when the object store has it. It survives the loss of this machine: the next Open, on any machine, finds it.
// Writers that come while a request is under way share the next. Writes with NoSync and Async are put there after
// LogInterval, or once there are LogBuffer bytes of them: a crash loses those of the last moments. LocalLog keeps the
// log on the local disk instead.
//
// To open the store for writing takes it over from the writer before, which gets ErrFenced. After that it acknowledges
// no write, so none can be lost. There is no lock, so OpenContext never waits (but see LocalLog), and Options.ReadOnly
// keeps no writer out.
type Objects struct {
	// Store has the objects, and nothing else: see objstore.Sub for a part of a bucket. It must honour conditions:
	// Open for writing refuses one that does not (objstore.ErrUnconditional), by a short test each time and a longer
	// one when the store is created. The DB does not close it. A call that panics, or calls runtime.Goexit, has
	// failed; a write that does may have been performed, as with objstore.ErrUnknown.
	Store objstore.Store

	// Branch is the branch that is opened: empty for the main one, which is there from the
	// beginning; Clone makes others. Each has one writer at a time, all of them at the same time.
	Branch string

	// Checkpoint opens a checkpoint of the branch in place of the branch, by OpenReadOnly: the
	// state that it was when PinCheckpoint was called, for ever. A Clone of it can be written to.
	Checkpoint string

	// LocalLog keeps the log in the directory that Open is given, on the local disk, and not in the object store. Sync
	// and NoSync then mean what they mean for a store in a directory: this machine's disk and operating system have
	// the write. Neither sends a request, and LogInterval and LogBuffer do not matter. Sorted files go to the
	// object store as before, so that what it has is the store as of the last flush.
	//
	// A machine whose disk is lost takes the writes since the last flush with it. As long as a store is open, and
	// after a crash, only Open with this directory opens it for writing. Elsewhere Open fails with ErrLogElsewhere,
	// and leaves the writer in peace. Close flushes: a store that was closed without an error opens anywhere. The
	// directory is locked (ErrLocked), and may be that of the cache. It must not go back to an earlier state: an older
	// copy of it, from a snapshot of the disk, lacks writes. LocalLog may be set at one opening and not at the next:
	// the log is recovered from where it is.
	//
	// Readers of OpenReadOnly, on this machine too, see what was flushed, and WaitForChange wakes at flushes.
	LocalLog bool

	// AbandonLog has Open give up a log on a disk that is out of reach, and go on with what was flushed. Writes since
	// the last flush are lost, even those acknowledged with Sync. So are writes that a writer which still runs
	// acknowledges before its next flush, which fails with ErrFenced. Open reports it by Events.RecoveryDropped.
	// Should the directory come back, its logs do not fit the store any more. To open the store there fails with
	// ErrLogAbandoned, and with AbandonLog keeps them aside, as 000012.wal.epoch-3. A log that is where it should be
	// is recovered whether this is set or not. Set it for one opening: a store that always sets it takes itself over.
	AbandonLog bool

	// LogInterval is how long writes without Sync wait to be put into the object store: 100 ms
	// by default. A store that is not written to sends no requests.
	LogInterval time.Duration

	// LogBuffer is how many bytes of the log wait at most: 8 MiB by default.
	LogBuffer int

	// CacheSize is how many bytes of sorted files and blob files are cached on the local disk, in the directory that
	// Open is given, across restarts. The default is none, and so is less than 2 MiB, which the log says. Damaged
	// bytes there are fetched again, and nothing is lost if it is deleted. One process at a time has the cache.
	CacheSize int64

	// WriteThrough puts sorted files and blob files that this writer writes into the cache at once, so that reading
	// them fetches nothing. A flush or compaction then waits for the local disk too.
	WriteThrough bool

	// Patience is how long a write waits for an object store that cannot be reached, or has too
	// much to do: 1 minute by default. Then it fails, and the store takes no writes until it has
	// resumed. The pauses between tries are counted, and requests are not: however short it is, a
	// request that nothing is wrong with succeeds.
	Patience time.Duration

	// Grace is how long objects that the store no longer needs are kept for readers of
	// OpenReadOnly that have not refreshed. It is 10 minutes by default, none if negative.
	// Readers that are given the same as the writer never miss what is new. With less than a
	// minute, a Refresh that comes so late is a LIST more.
	Grace time.Duration

	// MaxStaleness bounds how long a writer that another one has taken over returns values that may be outdated. After
	// it, reads, Sync and transactions that write nothing fail with ErrFenced; or with ErrUnconfirmed, if the object
	// store does not answer, until it does. Iterators that are open go on, and writes fail as they do without it.
	// 0, the default, is no bound: a writer that only reads returns what it has, and learns that it was taken over
	// when it writes next.
	//
	// It costs a GET at Open, and one or two in each half of MaxStaleness; a read costs no more than without it. A
	// process that was stopped for a while may return an outdated value in the moment in which it continues.
	MaxStaleness time.Duration

	counters *objstore.Counters  // of the calls of Store, once the store is open
	partSize int                 // bytes of a part that a pass over a sorted file reads at a time; 0: 2 MiB
	edits    filelist.EditLimits // of lists of files
}

// ErrFenced is matched by errors of a store in an object store that another writer has taken over.
// Nothing that was acknowledged is lost: it is in the store as the other one has it. Writes
// whose fate is not known were not acknowledged. The DB takes no writes any more. Reads go on, of what it has, unless
// Objects.MaxStaleness is set: then they fail too. DB.Fenced tells without a write.
var ErrFenced = sequence.ErrFenced

// Errors of Open that say where the log of a store in an object store is: see Objects.LocalLog. The message names the
// machine and the directory, and what to do.
var (
	// ErrLogElsewhere is matched when the log is on a disk, and not in the directory that Open was given.
	ErrLogElsewhere = locallog.ErrElsewhere
	// ErrLogAbandoned is matched when the directory that Open was given has logs that another writer has given up.
	ErrLogAbandoned = locallog.ErrAbandoned
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
		Branch: o.Objects.Branch, Checkpoint: o.Objects.Checkpoint, Grace: o.Objects.grace(),
		Patience: o.Objects.Patience}, Root: objectsRoot, Local: local, Writes: !o.ReadOnly,
		Logs: remote.LogOptions{Interval: o.Objects.LogInterval, MaxBuffered: o.Objects.LogBuffer,
			Patience: max(o.Objects.Patience, time.Minute), Edits: o.Objects.edits}, Log: o.Logger,
		Tables:   remote.TableOptions{PartSize: o.Objects.partSize, WriteThrough: o.Objects.WriteThrough},
		CacheDir: dir, CacheSize: cache,
		LogDir: dir, LocalLog: o.Objects.LocalLog, AbandonLog: o.Objects.AbandonLog, Place: placeOf(dir)})
}

// grace returns Grace, or its default.
func (o *Objects) grace() time.Duration {
	if o.Grace == 0 {
		return 10 * time.Minute
	}
	return max(o.Grace, 0)
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
func (o *Objects) checkConditions(ctx context.Context) error {
	if err := objstore.CheckConditional(ctx, o.Store, "check/"); err != nil {
		return fmt.Errorf("siftkv: the object store cannot hold a store: %w", err)
	}
	return nil
}
