package tablecache

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/falsepositives"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
)

// An Entry is a table with its reader, which is opened on first use, and closed when the Cache lacks memory.
type Entry struct {
	manifest.Table

	Reader  atomic.Pointer[sstable.Reader]
	opening sync.Mutex     // held to store Reader
	cache   *Cache         // that opened the reader; set before the table is in the clock
	left    []sstable.Left // readers that were released, of which some may be in use
	traffic traffic

	filterErr, rangesErr error // why a filter is not usable, as a reader has found
	unusable             bool  // one was not, and is counted
}

// Open returns the table's reader.
func (t *Entry) Open(c *Cache) (*sstable.Reader, error) {
	if r := t.Reader.Load(); r != nil {
		return r, nil
	}
	return c.open(t)
}

// A Cache opens the files of a store's tables, and keeps the memory that their readers
// pin within the limit of a Memory, if it has one.
type Cache struct {
	Path     func(num uint64) string
	OpenFile func(name string) (vfs.ReadFile, error)
	Options  sstable.ReaderOptions // what the readers of all tables share
	Log      *slog.Logger
	Memory   *Memory // nil: filters and indexes are not bounded
	KeepOpen bool    // files may be gone when they are opened again: no reader is released
	Far      bool    // each read of a file is a request to another machine

	FalsePositives *falsepositives.Memory // nil: they are not remembered

	Parts sstable.Budget // of what iterators prefetch, where reads are requests

	Filters  atomic.Int64  // bytes pinned by open tables
	Indexes  atomic.Int64  // bytes pinned by open tables
	Skipped  atomic.Int64  // filters of open tables that are on disk for want of room
	Loads    atomic.Uint64 // filters that were read again, in place of those that saved less
	Left     atomic.Uint64 // readers that were released for want of room
	Unusable atomic.Uint64 // filters that are damaged, or of an unknown family
}

func (c *Cache) open(t *Entry) (*sstable.Reader, error) {
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
		o.Room = c.hasRoom
		o.FalsePositives = c.FalsePositives.NewTable()
		r, err = sstable.NewReader(f, size, &o)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	t.traffic.asked.Store(opened)
	r.SetUnusable(t.filterErr, t.rangesErr)
	c.noteUnusable(t, r)
	_, index := r.PinnedBytes()
	c.closeIdle(t, index)
	c.enter(t, r)
	t.Reader.Store(r)
	return r, nil
}

// noteUnusable notes which filters of t are not usable, as r has found, and counts t the first time. What one
// filter is says nothing of the other. The caller holds t.opening.
func (c *Cache) noteUnusable(t *Entry, r *sstable.Reader) {
	t.filterErr, t.rangesErr = r.FilterError(), r.RangeFilterError()
	err := errors.Join(t.filterErr, t.rangesErr)
	if err == nil || t.unusable {
		return
	}
	t.unusable = true
	c.Unusable.Add(1)
	c.Log.Warn("a filter is not usable: lookups or scans in its file read blocks that it would have spared",
		"file", c.Path(t.Num), "error", err)
	callback.Log(c.Log, err)
}

// Close closes the table's reader. The table must not be in use any more.
func (c *Cache) Close(t *Entry) error {
	t.opening.Lock()
	defer t.opening.Unlock()
	var err error
	if r := t.Reader.Swap(nil); r != nil {
		c.leave(t, r)
		err = r.Close()
	}
	for _, l := range t.left {
		err = errors.Join(err, l.Close())
	}
	t.left = nil
	return err
}

// hasRoom reports whether a table may pin filters of size bytes when it is opened. Filters may take half of the limit:
// a filter saves more reads than the blocks that its bytes could cache, but a store needs some cache.
func (c *Cache) hasRoom(size int64) bool {
	return c.Memory == nil || c.Memory.filters.Load()+size <= c.Memory.limit.Load()/2
}

// enter counts a reader that is about to become t's.
func (c *Cache) enter(t *Entry, r *sstable.Reader) {
	c.count(r, 1)
	t.cache = c
	if c.Memory == nil {
		return
	}
	if skips(r) {
		c.skip(1)
	}
	c.Memory.clock.add(t)
	c.Memory.resize()
}

// leave counts a reader out that was t's.
func (c *Cache) leave(t *Entry, r *sstable.Reader) {
	c.count(r, -1)
	if c.Memory == nil {
		return
	}
	if skips(r) {
		c.skip(-1)
	}
	c.Memory.clock.remove(t)
	c.Memory.resize()
}

// count adds what n readers like r pin.
func (c *Cache) count(r *sstable.Reader, n int64) {
	filter, index := r.PinnedBytes()
	c.addFilters(n * filter)
	c.Indexes.Add(n * index)
	if c.Memory != nil {
		c.Memory.indexes.Add(n * index)
	}
}

func (c *Cache) addFilters(n int64) {
	c.Filters.Add(n)
	if c.Memory != nil {
		c.Memory.filters.Add(n)
	}
}

func (c *Cache) skip(n int64) {
	c.Skipped.Add(n)
	c.Memory.skipped.Add(n)
}

// skips reports whether a filter of a table is only on disk, and not known to be unusable.
func skips(r *sstable.Reader) bool { return r.SkippedFilters() > 0 }
