package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/changelog"
	"github.com/siftkv/siftkv/internal/commit"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/cursor"
	"github.com/siftkv/siftkv/internal/diskspace"
	"github.com/siftkv/siftkv/internal/handles"
	"github.com/siftkv/siftkv/internal/job"
	"github.com/siftkv/siftkv/internal/lookupwatch"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/nextlog"
	"github.com/siftkv/siftkv/internal/operand"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Reader is what a DB, a Snapshot and a Tx share.
type Reader interface {
	Get(key []byte) ([]byte, error)
	AppendGet(dst, key []byte) ([]byte, error)
	Has(key []byte) (bool, error)
	GetSize(key []byte) (int, error)
	GetReader(key []byte) (*ValueReader, error)
	NewIter(o *IterOptions) (*Iterator, error)
}

var (
	_ Reader = (*DB)(nil)
	_ Reader = (*Snapshot)(nil)
	_ Reader = (*Tx)(nil)
)

// A DB is an open store. All methods are safe for concurrent use. After Close every method returns ErrClosed.
type DB struct {
	opts Options
	log  *slog.Logger

	place
	clock    clock
	memory   storeMemory
	tables   tablecache.Cache
	values   *values.Store
	counters counters.Store
	cleaner  version.Cleaner
	logged

	compactionRate job.RateLimiter
	resumer        resumer
	space          diskspace.Space
	early          memtable.Watch

	cursors cursor.Env // of iterators
	watch   lookupwatch.Watch
	seen
	nextFile atomic.Uint64
	ending

	manifest version.ManifestWriter // its lock is taken before mu
	guarded

	follower  *follower  // of a store that was opened by OpenReadOnly
	ownership *ownership // of a writer in an object store with Objects.MaxStaleness

	handles openHandles
}

// logged is what has to do with logs.
type logged struct {
	commits commit.Pipeline // writes them
	logs    nextlog.Source  // makes them
	slots   changelog.Log   // keeps them
	marks   changelog.Marker
}

// A place is where the files of a store are. It is the same from Open to Close.
type place struct {
	dir       string
	directory *vfs.Directory // dir, as it was opened; nil: it cannot be moved
	objects   *objectStore   // nil: the store is in a directory on the disk
	fs        vfs.FS
	openFiles *vfs.ReadLimit
	lock      io.Closer
	storeID   uint64
}

// seen is what is read without a lock. It changes with mu held, except visible, which the commit pipeline raises.
type seen struct {
	present readView                  // what readers see now
	state   atomic.Pointer[readState] // what readers see; nil: closed, or see refusal
	visible atomic.Uint64             // sequence number of the last write that readers see
	room    atomic.Pointer[memTable]  // the active memtable, for a write that need not wait; nil: ask with mu
}

// An ending is how far Close has come.
type ending struct {
	closed   atomic.Bool
	isClosed chan struct{} // closed when the first Close has finished
	closeErr error         // what it returned
}

// guarded is what mu guards. The mutex is never held during I/O.
type guarded struct {
	mu       sync.Mutex
	progress sync.Cond // a flush or a compaction has ended, or the store fails or closes

	mem      *memTable
	imms     []*memTable // oldest first
	current  *version.Version
	limit    base.SeqNum      // of new states: see readState
	logNum   uint64           // writes in WALs with smaller numbers are in tables
	operands operand.Combiner // guarded in a store that follows a writer; in others it does not change
	features manifest.Features

	snapshots   snapshotList
	flushing    bool
	ingesting   int // calls of Ingest, and those about slots, which may write files
	compactions compaction.Scheduler
	failure     error // why the store takes no writes, see background_error.go
	refusal     refusal
	closing     bool
}

// openHandles are what callers have opened and not closed yet. Each list has its own lock.
type openHandles struct{ iterators, snapshots, transactions, readers handles.List }

// errClosing ends background work when the store closes.
var errClosing = errors.New("siftkv: closing")

// writable returns an error if the store does not take writes.
func (d *DB) writable() error {
	if d.closed.Load() {
		return ErrClosed
	}
	if d.opts.ReadOnly {
		return ErrReadOnly
	}
	return d.failedError()
}

// interrupted returns why work for a caller ends early, or nil: the store is closed, or ctx has ended.
func (d *DB) interrupted(ctx context.Context, work string) error {
	if d.closed.Load() {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return base.ContextError(ctx, work)
	}
	return nil
}

// seq returns the sequence number up to which readers see writes.
func (d *DB) seq() base.SeqNum { return base.SeqNum(d.visible.Load()) }

// newFileNum returns a number that no file has.
func (d *DB) newFileNum() uint64 { return d.nextFile.Add(1) - 1 }

// Set stores value under key. It copies both.
func (d *DB) Set(key, value []byte, o *WriteOptions) error {
	b := d.scratchBatch()
	return commitScratch(b, b.Set(key, value), o)
}

// Delete removes key. A key that is not there is no error.
func (d *DB) Delete(key []byte, o *WriteOptions) error {
	b := d.scratchBatch()
	return commitScratch(b, b.Delete(key), o)
}

// DeleteRange removes all keys of [lo, hi); a nil lo or hi has no bound.
func (d *DB) DeleteRange(lo, hi []byte, o *WriteOptions) error {
	b := d.scratchBatch()
	return commitScratch(b, b.DeleteRange(lo, hi), o)
}

// DeletePrefix removes all keys that begin with prefix. It costs one entry, however many keys there are. An empty
// prefix is an error, where DeleteRange(p, PrefixEnd(p)) would remove all keys of the store.
func (d *DB) DeletePrefix(prefix []byte, o *WriteOptions) error {
	b := d.scratchBatch()
	return commitScratch(b, b.DeletePrefix(prefix), o)
}

// scratchBatches are the batches of single writes. They have no type there: of one in an interface the linker keeps the
// methods of all that it refers to, which is the store with its transactions.
var scratchBatches = sync.Pool{New: func() any { return unsafe.Pointer(new(Batch)) }}

const maxRetainedScratch = 64 << 10 // bytes of memory that a scratch batch keeps

func (d *DB) scratchBatch() *Batch {
	b := (*Batch)(scratchBatches.Get().(unsafe.Pointer))
	b.db = d
	return b
}

// commitScratch commits a scratch batch, unless its one write has failed, and releases it. ErrClosed comes first.
func commitScratch(b *Batch, err error, o *WriteOptions) error {
	switch {
	case err == nil:
		err = b.Commit(o)
	case b.db != nil && b.db.closed.Load():
		err = ErrClosed
	}
	b.Reset()
	b.db = nil
	if b.repr.Cap() <= maxRetainedScratch {
		scratchBatches.Put(unsafe.Pointer(b))
	}
	return err
}

// Close makes all writes durable, ends background work and releases everything. It waits for writes in progress, and
// for flushes and compactions to notice: the log has what no table has yet.
//
// A store that has failed tries once more to write what it holds in memory alone; if that does not work, the error says
// so. The error matches ErrDirectoryMoved if the store was safely written to a directory that has another name by now.
//
// Iterators, snapshots, transactions and readers of values that are still open stay safe to use and return ErrClosed.
// The error then matches ErrIteratorsOpen, ErrSnapshotsOpen, ErrTransactionsOpen or ErrReadersOpen. It says where each
// was opened if Options.TraceOpens is set. A second Close waits for the first, and returns what that returned.
func (d *DB) Close() error { return d.CloseContext(context.Background()) }

// CloseContext is Close that does not wait for an object store that cannot be reached. When ctx ends, so do the
// requests that are under way, and the store is closed as it is. The error then matches ctx.Err(), and other errors
// say what is not in the object store. For a store in a directory ctx bounds only the wait for an earlier Close:
// nothing ends the wait for the disk.
func (d *DB) CloseContext(ctx context.Context) error {
	if d.closed.Swap(true) {
		select {
		case <-d.isClosed:
			return d.closeErr
		case <-ctx.Done():
			return base.ContextError(ctx, "waited for the store to be closed")
		}
	}
	defer close(d.isClosed)
	d.commits.Watch.Notify()
	finished := d.objects.closeWith(ctx)
	d.closeErr = d.close()
	if !finished() && d.closeErr != nil {
		d.closeErr = errors.Join(base.ContextError(ctx, "the store was closed early"), d.closeErr)
	}
	return d.closeErr
}

func (d *DB) close() error {
	d.resumeAtClose()
	d.logs.Drop()
	endless := func() bool { return d.failedError() != nil || d.objects.holdsAll() }
	err := errors.Join(d.slots.Release(), d.follower.close(), d.commits.Close(endless))
	d.values.Commits().AwaitSyncs()
	err = errors.Join(err, d.failedError())
	if err == nil {
		err = d.objects.flushLog()
	}

	err = errors.Join(err, d.values.Close())
	leaked := errors.Join(d.handles.iterators.Leaked(ErrIteratorsOpen, "iterator"),
		d.handles.snapshots.Leaked(ErrSnapshotsOpen, "snapshot"),
		d.handles.transactions.Leaked(ErrTransactionsOpen, "transaction"),
		d.handles.readers.Leaked(ErrReadersOpen, "reader of a value"))
	d.dropState()
	d.cleaner.Wait()
	err = d.releaseAll(err, func(err error) error {
		if d.manifest.Log != nil {
			err = closeManifest(d, err)
		}
		if moved := d.directory.Check(); moved != nil && !d.opts.ReadOnly {
			err = errors.Join(err, fmt.Errorf("%w; what was written is in the directory that was opened as %s", moved,
				d.dir))
		}
		return err
	})
	return errors.Join(err, leaked)
}

// releaseAll releases what the store holds, and joins errors to err. The function ends the manifest.
func (d *DB) releaseAll(err error, endManifest func(err error) error) error {
	d.dropState()
	d.cleaner.Stop()
	err = errors.Join(err, d.cleaner.Drain())
	d.memory.memtables.Close()
	d.memory.cache.Release() // tables of open iterators keep it
	err = endManifest(err)
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	err = errors.Join(err, d.directory.Close(), d.objects.close())
	d.memory.share.Leave()
	return err
}
