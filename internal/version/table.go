package version

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Table is a sorted file of the store. Its reader is opened by the first that needs it
// and stays with the table from then on. The store's mutex guards
// the marks.
type Table struct {
	manifest.Table

	Reader  atomic.Pointer[sstable.Reader]
	opening sync.Mutex

	Refs        int  // versions that list the table
	Obsolete    bool // no current version lists it: the last reference removes the file
	Compacting  bool // an input of a running compaction
	Quarantined bool // damaged: never an input of a compaction that nobody asked for
}

// Name returns the base name of the table's file.
func (t *Table) Name() string { return manifest.FileName(manifest.FileTable, t.Num) }

// Open returns the table's reader.
func (t *Table) Open(c *TableCache) (*sstable.Reader, error) {
	if r := t.Reader.Load(); r != nil {
		return r, nil
	}
	return c.open(t)
}

// A TableCache opens the files of a store's tables, and keeps the memory that their readers
// pin within a limit: the block cache gives way to filters and indexes.
type TableCache struct {
	Path      func(num uint64) string
	OpenFile  func(name string) (vfs.ReadFile, error)
	Options   sstable.ReaderOptions // what the readers of all tables share
	Log       *slog.Logger
	CacheSize int64
	Limit     int64 // of bytes for blocks, filters and indexes together; 0: none

	Filters  atomic.Int64  // bytes pinned by open tables
	Indexes  atomic.Int64  // bytes pinned by open tables
	Skipped  atomic.Int64  // filters that were left on disk for want of room
	Unusable atomic.Uint64 // filters that are damaged, or of an unknown family
}

func (c *TableCache) open(t *Table) (*sstable.Reader, error) {
	t.opening.Lock()
	defer t.opening.Unlock()
	if r := t.Reader.Load(); r != nil {
		return r, nil
	}
	o := c.Options
	o.Name, o.TailSize, o.ID, o.Seq = c.Path(t.Num), t.TailSize, t.ID, t.Seq
	f, err := c.OpenFile(o.Name)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	var r *sstable.Reader
	if err == nil {
		o.SkipFilter = !c.admitFilter(int64(t.FilterBytes))
		r, err = sstable.NewReader(f, size, &o)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	c.pin(r, 1)
	if err := r.FilterError(); err != nil {
		c.Unusable.Add(1)
		c.Log.Warn("a filter is not usable: lookups in its file read blocks that it would have spared", "file", o.Name,
			"error", err)
	}
	t.Reader.Store(r)
	return r, nil
}

// Close closes the table's reader. Nobody uses the table any more.
func (c *TableCache) Close(t *Table) error {
	t.opening.Lock()
	defer t.opening.Unlock()
	if r := t.Reader.Swap(nil); r != nil {
		c.pin(r, -1)
		return r.Close()
	}
	return nil
}

// admitFilter reports whether a table may pin a filter of so many bytes. Filters may take
// half of the limit: a filter spares more reads than the blocks that its bytes could
// cache, but a store without any cache would starve.
func (c *TableCache) admitFilter(size int64) bool {
	if c.Limit == 0 || c.Filters.Load()+size <= c.Limit/2 {
		return true
	}
	c.Skipped.Add(1)
	return false
}

func (c *TableCache) pin(r *sstable.Reader, sign int64) {
	filter, index := r.PinnedBytes()
	pinned := c.Filters.Add(sign*filter) + c.Indexes.Add(sign*index)
	if c.Limit > 0 {
		c.Options.Cache.Resize(min(c.CacheSize, max(c.Limit-pinned, c.Limit/16)))
	}
}
