package kv

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A table is a sorted file of the store. Its reader is opened by the first that
// needs it and hangs off the table from then on.
type table struct {
	manifest.Table

	reader  atomic.Pointer[sstable.Reader]
	opening sync.Mutex

	// Guarded by DB.mu.
	refs        int  // versions that list the table
	obsolete    bool // no current version lists it: the last reference removes the file
	compacting  bool // an input of a running compaction
	quarantined bool // damaged: never an input of a compaction that nobody asked for
}

// open returns the table's reader.
func (d *DB) openTable(t *table) (*sstable.Reader, error) {
	if r := t.reader.Load(); r != nil {
		return r, nil
	}
	return d.openTableSlow(t)
}

func (d *DB) openTableSlow(t *table) (*sstable.Reader, error) {
	t.opening.Lock()
	defer t.opening.Unlock()
	if r := t.reader.Load(); r != nil {
		return r, nil
	}
	name := d.path(manifest.FileTable, t.Num)
	f, err := d.openFile(name)
	if err != nil {
		return nil, d.follower.stale(err)
	}
	size, err := f.Size()
	var r *sstable.Reader
	if err == nil {
		r, err = sstable.NewReader(f, size, &sstable.ReaderOptions{
			Name: name, Hint: d.hint(), Cache: d.cache, TailSize: t.TailSize, ID: t.ID, Seq: t.Seq,
			Filter: d.opts.Filter, Prefix: d.opts.Prefix, Map: d.opts.MemoryMap,
			SkipFilter: !d.memory.admitFilter(int64(t.FilterBytes)), AnyExpansion: true,
		})
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	d.memory.pin(r)
	if err := r.FilterError(); err != nil {
		d.counters.unusableFilters.Add(1)
		d.log.Warn("a filter is not usable: lookups in its file read blocks that it would have spared", "file", name,
			"error", err)
	}
	t.reader.Store(r)
	return r, nil
}

// openFile opens a table's file under the bound of MaxOpenFiles. The store's tables stay as
// long as they are referred to, and so can be opened again; those of a writer that does not
// know of this follower do not.
func (d *DB) openFile(name string) (vfs.ReadFile, error) {
	if d.follower != nil && d.follower.reg == nil {
		return d.fs.Open(name)
	}
	f, err := d.openFiles.Open(d.fs, name)
	if err != nil || d.follower == nil {
		return f, err
	}
	return followedFile{f, d.follower}, nil
}

// A followedFile is a file of a view under the bound of MaxOpenFiles: it may be gone when it
// is opened again.
type followedFile struct {
	vfs.ReadFile
	f *follower
}

func (r followedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReadFile.ReadAt(p, off)
	return n, r.f.stale(err)
}

// Map implements vfs.Mapper.
func (r followedFile) Map(size int64) (data []byte, unmap func() error, err error) {
	data, unmap, err = r.ReadFile.(vfs.Mapper).Map(size)
	return data, unmap, r.f.stale(err)
}

// closeTable closes the table's reader. Nobody uses the table any more.
func (d *DB) closeTable(t *table) error {
	t.opening.Lock()
	defer t.opening.Unlock()
	if r := t.reader.Swap(nil); r != nil {
		d.memory.unpin(r)
		return r.Close()
	}
	return nil
}

// path returns the name of a numbered file of the store.
func (d *DB) path(kind manifest.FileKind, num uint64) string {
	return filepath.Join(d.dir, manifest.FileName(kind, num))
}

// hint is the command that errors about damage tell the user to run.
func (d *DB) hint() string {
	return "go run github.com/siftkv/siftkv/cmd/siftkv@latest verify " + d.dir
}

// repairHint is the command that mends a store with damaged files.
func (d *DB) repairHint() string {
	return "go run github.com/siftkv/siftkv/cmd/siftkv@latest repair " + d.dir
}

// name returns the base name of the table's file.
func (t *table) name() string { return manifest.FileName(manifest.FileTable, t.Num) }
