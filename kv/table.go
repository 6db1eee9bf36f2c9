package kv

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A table is a sorted file of the store. Its reader is opened by the first that needs it
// and stays with the table from then on. The marks are guarded by the store's mutex.
type table struct {
	manifest.Table

	reader  atomic.Pointer[sstable.Reader]
	opening sync.Mutex

	refs        int  // versions that list the table
	obsolete    bool // no current version lists it: the last reference removes the file
	compacting  bool // an input of a running compaction
	quarantined bool // damaged: never an input of a compaction that nobody asked for
}

// name returns the base name of the table's file.
func (t *table) name() string { return manifest.FileName(manifest.FileTable, t.Num) }

// open returns the table's reader.
func (t *table) open(c *tableCache) (*sstable.Reader, error) {
	if r := t.reader.Load(); r != nil {
		return r, nil
	}
	return c.open(t)
}

// A tableCache opens the files of a store's tables, and keeps the memory that their readers
// pin within a limit: the block cache gives way to filters and indexes.
type tableCache struct {
	path      func(num uint64) string
	openFile  func(name string) (vfs.ReadFile, error)
	options   sstable.ReaderOptions // what the readers of all tables share
	log       *slog.Logger
	cacheSize int64
	limit     int64 // of bytes for blocks, filters and indexes together; 0: none

	filters  atomic.Int64  // bytes pinned by open tables
	indexes  atomic.Int64  // bytes pinned by open tables
	skipped  atomic.Int64  // filters that were left on disk for want of room
	unusable atomic.Uint64 // filters that are damaged, or of an unknown family
}

func (c *tableCache) open(t *table) (*sstable.Reader, error) {
	t.opening.Lock()
	defer t.opening.Unlock()
	if r := t.reader.Load(); r != nil {
		return r, nil
	}
	o := c.options
	o.Name, o.TailSize, o.ID, o.Seq = c.path(t.Num), t.TailSize, t.ID, t.Seq
	f, err := c.openFile(o.Name)
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
		c.unusable.Add(1)
		c.log.Warn("a filter is not usable: lookups in its file read blocks that it would have spared", "file", o.Name,
			"error", err)
	}
	t.reader.Store(r)
	return r, nil
}

// close closes the table's reader. Nobody uses the table any more.
func (c *tableCache) close(t *table) error {
	t.opening.Lock()
	defer t.opening.Unlock()
	if r := t.reader.Swap(nil); r != nil {
		c.pin(r, -1)
		return r.Close()
	}
	return nil
}

// admitFilter reports whether a table may pin a filter of so many bytes. Filters may take
// half of the limit: a filter spares more reads than the blocks that its bytes could
// cache, but a store without any cache would starve.
func (c *tableCache) admitFilter(size int64) bool {
	if c.limit == 0 || c.filters.Load()+size <= c.limit/2 {
		return true
	}
	c.skipped.Add(1)
	return false
}

func (c *tableCache) pin(r *sstable.Reader, sign int64) {
	filter, index := r.PinnedBytes()
	pinned := c.filters.Add(sign*filter) + c.indexes.Add(sign*index)
	if c.limit > 0 {
		c.options.Cache.Resize(min(c.cacheSize, max(c.limit-pinned, c.limit/16)))
	}
}
