package tablecache

import (
	"runtime"
	"slices"

	"github.com/siftkv/siftkv/internal/sstable"
)

// Filters compete for memory if they do not all fit. A filter saves a read for each lookup of a key that its table does
// not have. That can be counted for every table, with the filter in memory or not, and the memory goes to the filters
// that save most per byte. If the filter is on disk, a lookup in the table has none: the cost grows with the part of
// the filters that do not fit. Filters are not read through the block cache, in pages: then a lookup of an existing key
// would pay too (docs/adr/0018-filters-compete-for-memory.md).

// A filter is read only if it saves worthwhile times as much as those that it replaces. Reading one
// takes as long as some tens of blocks, and sampled counts vary.
const worthwhile = 3

// Sampled receives a sample of the lookups and scans in t: absent says that t had nothing for it, unfiltered that the
// filter could not be asked. It may read t's filters into memory.
func (c *Cache) Sampled(t *Entry, absent, unfiltered bool) {
	if c.Memory == nil || c.Memory.skipped.Load() == 0 && !c.IndexesShort() {
		return // everything fits
	}
	if c.Memory.clock.count(t, absent) {
		c.closeIdle(t, 0)
	}
	if !absent || !unfiltered || !t.opening.TryLock() {
		return
	}
	defer t.opening.Unlock()
	if r := t.Reader.Load(); r != nil && skips(r) && c.displace(t, r) {
		c.load(t, r)
	}
}

// IndexesShort reports whether indexes take so much of the limit that new files should have small ones.
func (c *Cache) IndexesShort() bool {
	m := c.Memory
	return m != nil && m.indexes.Load() > m.limit.Load()/(2*indexPart)
}

// A table's filter for lookups and its range filter come and go together: what both of them save is counted together.

// saves returns what a table's filters, of bytes bytes, save per byte.
func (t *Entry) saves(bytes int64) float64 {
	return float64(t.traffic.absent.Load()) / float64(max(bytes, 1))
}

// savesNow is saves for the filters that an open table has in memory.
func (t *Entry) savesNow() float64 {
	r := t.Reader.Load()
	if r == nil {
		return 0
	}
	filters, _ := r.PinnedBytes()
	return t.saves(filters)
}

// A filter that gave way keeps its memory until the collector finds that no lookup uses it. No more than this part of
// the limit is in that state: filters change places as fast as the collector follows.
const retiredPart = 8

// retire counts the filter of a reader that is about to be replaced.
func (m *Memory) retire(r *sstable.Reader) {
	filter, _ := r.PinnedBytes()
	m.retired.Add(filter)
	runtime.AddCleanup(r, func(n int64) { m.retired.Add(-n) }, filter)
}

// displace makes room for the filters that t's reader lacks among those that save much less. It
// reports whether there is room, which is then t's. The caller holds t.opening.
func (c *Cache) displace(t *Entry, r *sstable.Reader) bool {
	m, limit := c.Memory, c.Memory.limit.Load()
	m.clock.mu.Lock()
	defer m.clock.mu.Unlock()
	size, need := r.SkippedFilters(), int64(0)
	saves := t.saves(size)
	if size > limit/2 || m.retired.Load() > limit/retiredPart {
		return false
	}
	var victims []*Entry
	loaded := func(v *Entry) bool {
		r := v.Reader.Load()
		return v != t && r != nil && r.HasFilters() && !slices.Contains(victims, v)
	}
	for need = m.filters.Load() + size - limit/2; need > 0; {
		v, smallest := m.clock.minWorth(loaded, (*Entry).savesNow)
		if v == nil || len(victims) == candidates || smallest*worthwhile > saves {
			return false
		}
		victims = append(victims, v)
		if r := v.Reader.Load(); r != nil {
			filters, _ := r.PinnedBytes()
			need -= filters
		}
	}
	for _, v := range victims {
		if !v.opening.TryLock() {
			return false // it is being closed: the next sample comes
		}
		if r := v.Reader.Load(); r != nil && r.HasFilters() {
			m.retire(r)
			v.cache.swap(v, r, r.WithoutFilters())
		}
		v.opening.Unlock()
	}
	c.addFilters(size)
	return true
}

// load reads t's filters into the room that is there for them. A filter that cannot be read now
// stays on disk. The caller holds t.opening.
func (c *Cache) load(t *Entry, r *sstable.Reader) {
	with, err := r.WithFilters()
	c.addFilters(-r.SkippedFilters())
	if err != nil {
		c.Log.Warn("a filter could not be read: lookups go without", "file", c.Path(t.Num), "error", err)
		c.Memory.resize() // others have made room
		return
	}
	c.swap(t, r, with)
	c.Loads.Add(1)
	c.noteUnusable(t, with)
	c.Memory.resize()
}

// swap replaces a reader by one that differs in its filter. The caller holds t.opening.
func (c *Cache) swap(t *Entry, from, to *sstable.Reader) {
	before, _ := from.PinnedBytes()
	after, _ := to.PinnedBytes()
	c.addFilters(after - before)
	if skips(from) {
		c.skip(-1)
	}
	if skips(to) {
		c.skip(1)
	}
	t.Reader.Store(to)
}
