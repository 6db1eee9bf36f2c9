package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/diskcache"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
)

// FSOptions are the settings of an FS.
type FSOptions struct {
	branch.Options // the directory has the files of the branch, or of the checkpoint, for ever; Patience: Logs.Patience

	objectdir.Params // Writes: before the exclusive lock, only CURRENT is visible, if there is a store

	Logs      LogOptions // Patience is for lists of files too
	Tables    TableOptions
	Requests  *objstore.Counters // of the object store, for Metrics; nil: nothing counts them
	CacheSize int64              // in bytes, of what was read of sorted files and blob files, in Dir; 0: no cache

	LocalLog   bool // logs are put into Dir, and not into the object store
	AbandonLog bool // a new writer abandons logs that are elsewhere, and renames stale ones
}

// An FS is a store's directory in an object store, for one writer or any number of readers. It
// has what a directory on a disk would have, in this form:
//
//   - a stored file, a sorted one for example, is an object, which Sync puts there. Its name has the writer's epoch
//     and nonce, so no two writers use the same name.
//   - logs are in entries of a sequence: Sync puts there what was written since the last one. Or they are files in a
//     directory on the local disk, which the list of files names.
//   - CURRENT, its manifest, and the list of files are in an entry of the same sequence. It is put when CURRENT is
//     replaced and when that manifest is synced. The first CURRENT of a writer waits for the next entry if it names the
//     files that were there.
//   - files of slots are in the list of files. SyncDir publishes what Rename and Remove have changed of them.
//   - all other files are in memory only. On a disk they tell a writer what a crash has left behind; here the list of
//     files has all that is left.
//
// An exclusive lock fences all earlier writers: they can publish no file any more, and their logs do not grow. It keeps
// no writer out: the next one fences this one, whose calls then fail with ErrFenced. A shared lock does nothing.
//
// An FS without the exclusive lock is a reader. Opening CURRENT reads the newest state from the object store; all other
// files are as of then. An FS is an [objectdir.Directory].
type FS struct {
	o        FSOptions
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	branches *branch.Set
	cache    *diskcache.Cache
	small    vfs.FS // all files except stored ones; logs that are being written are here if KeepLogs says so
	now      func() time.Time
	lost     atomic.Bool // the next refresh looks by a listing
	span     atomic.Pointer[span]

	refreshing sync.Mutex         // held to read what is new; it is locked before mu
	tail       *sequence.TailView // of an FS that will be the writer
	at         mark
	saved      uint64 // the number of the checkpoint that was read
	growing    map[string]*growing
	lostLogs   []objectdir.LostLog

	mu     sync.Mutex
	seq    *sequence.Sequence // nil: it is not known where the branch is; set while refreshing is held
	prefix filelist.BranchPrefix
	list   filelist.List
	tables *Tables   // nil: nothing is known of the store
	writer *fsWriter // nil: this is a reader
}

// NewFS returns the FS of the store that is in an object store.
func NewFS(o FSOptions) *FS {
	o.Logs = o.Logs.withDefaults()
	o.Patience = cmp.Or(o.Patience, o.Logs.Patience)
	f := &FS{o: o, small: vfs.NewMem(), list: filelist.List{Files: map[uint64]filelist.File{}}, now: time.Now,
		growing: map[string]*growing{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.branches = branch.NewSet(o.Options)
	if o.Branch == "" {
		f.seq = f.branches.Sequence("", 0)
	}
	if o.CacheSize > 0 {
		f.cache = diskcache.Open(o.Local, o.Dir, diskcache.Options{Capacity: o.CacheSize, Log: o.Log})
	}
	return f
}

// Close implements objectdir.Directory. The object store stays open.
func (f *FS) Close() error {
	f.cancel()
	var err error
	if t := f.storedFiles(); t != nil {
		err = t.Close()
	}
	if f.cache != nil {
		err = errors.Join(err, f.cache.Close())
	}
	return err
}

// FlushCache waits until what the cache's directory had was found, and what was read has been written.
func (f *FS) FlushCache() { f.cache.Flush() }

// stored returns a stored file of the list of files.
func (f *FS) stored(kind manifest.FileKind, num uint64) (filelist.File, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.list.Files[num]
	return t, ok && t.Kind == kind
}

// storedFiles returns the store's sorted files and blob files; nil if it is not known which store that is.
func (f *FS) storedFiles() *Tables {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tables == nil && f.seq != nil && f.seq.Store() != 0 {
		o := f.o.Tables
		o.Patience = f.o.Patience
		o.Cache, o.CacheName = f.cache, fmt.Sprintf("%016x/", f.seq.Store())
		f.tables = NewTables(f.o.Objects, o)
	}
	return f.tables
}

// remote returns the base name of a file of the store, and whether it is one.
func (f *FS) remote(name string) (base string, ok bool) {
	dir, base := filepath.Split(name)
	return base, f.isRoot(dir)
}

var errReader = fmt.Errorf("only the writer of a store in an object store writes to it: %w", fs.ErrPermission)

// Create implements vfs.FS.
func (f *FS) Create(name string) (vfs.WriteFile, error) {
	base, ok := f.remote(name)
	if !ok {
		return f.o.Local.Create(name)
	}
	w := f.asWriter()
	if w == nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: errReader}
	}
	switch kind, num := manifest.ParseFileName(base); kind {
	case manifest.FileTable, manifest.FileBlob, manifest.FileKept:
		return w.createFile(num, kind)
	case manifest.FileWAL:
		return w.createLog(name, num)
	case manifest.FileManifest:
		return w.createManifest(name)
	default:
		return f.small.Create(name)
	}
}

// Open implements vfs.FS.
func (f *FS) Open(name string) (vfs.ReadFile, error) {
	base, ok := f.remote(name)
	if !ok {
		return f.o.Local.Open(name)
	}
	switch kind, num := manifest.ParseFileName(base); kind {
	case manifest.FileTable, manifest.FileBlob, manifest.FileKept:
		t, ok := f.stored(kind, num)
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return f.storedFiles().open(t.Key(num), t.Size, kind == manifest.FileBlob, f.span.Load()), nil
	case manifest.FileCurrent:
		if err := f.refresh(); err != nil {
			return nil, err
		}
	case manifest.FileWAL:
		if l := f.localLog(num); l != nil {
			return l.Open(num)
		}
		if w := f.asWriter(); w != nil && w.isPartial(num) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
		}
	}
	return f.small.Open(name)
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	base, ok := f.remote(name)
	if !ok {
		return f.o.Local.Remove(name)
	}
	w := f.asWriter()
	if w == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: errReader}
	}
	switch kind, num := manifest.ParseFileName(base); {
	case filelist.Stored(kind):
		return w.removeFile(name, num, kind)
	case kind == manifest.FileWAL && w.local.Has(num):
		return w.local.Remove(num)
	case kind == manifest.FileWAL:
		w.partial.Delete(num)
	case kind == manifest.FileSlot:
		return w.changeSlots(func() error { return f.small.Remove(name) })
	}
	return f.small.Remove(name)
}

// Rename implements vfs.FS.
func (f *FS) Rename(oldname, newname string) error {
	_, was := f.remote(oldname)
	base, is := f.remote(newname)
	switch {
	case !was && !is:
		return f.o.Local.Rename(oldname, newname)
	case was != is:
		return &fs.PathError{Op: "rename", Path: oldname, Err: errors.ErrUnsupported}
	}
	w := f.asWriter()
	if w == nil {
		return &fs.PathError{Op: "rename", Path: oldname, Err: errReader}
	}
	switch kind, _ := manifest.ParseFileName(base); kind {
	case manifest.FileCurrent:
		return w.setCurrent(oldname, newname)
	case manifest.FileSlot:
		return w.changeSlots(func() error { return f.small.Rename(oldname, newname) })
	}
	return f.small.Rename(oldname, newname)
}

// Link implements vfs.FS: object stores have no links.
func (f *FS) Link(oldname, newname string) error {
	if _, ok := f.remote(oldname); !ok {
		if _, ok = f.remote(newname); !ok {
			return f.o.Local.Link(oldname, newname)
		}
	}
	return &fs.PathError{Op: "link", Path: oldname, Err: errors.ErrUnsupported}
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (int64, error) {
	base, ok := f.remote(name)
	if !ok {
		return f.o.Local.Stat(name)
	}
	kind, num := manifest.ParseFileName(base)
	if kind == manifest.FileWAL {
		if l := f.localLog(num); l != nil {
			return l.Stat(num)
		}
	}
	if filelist.Stored(kind) {
		if t, ok := f.stored(kind, num); ok {
			return t.Size, nil
		}
		return 0, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return f.small.Stat(name)
}

// Lock implements vfs.FS.
func (f *FS) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	base, ok := f.remote(name)
	kind, _ := manifest.ParseFileName(base)
	switch {
	case !ok:
		return f.o.Local.Lock(name, mode)
	case kind == manifest.FileConsumer && f.asWriter() != nil: // all consumers are in this process
		return f.small.Lock(name, mode)
	case base != manifest.LockName:
		return nil, &fs.PathError{Op: "lock", Path: name, Err: errReader} // there are no registrations
	case mode != vfs.Exclusive:
		return io.NopCloser(nil), nil
	}
	return f.takeOver()
}

// join returns the path of a file of the store.
func (f *FS) join(base string) string { return filepath.Join(objectdir.Root, base) }

func (f *FS) asWriter() *fsWriter {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writer
}
