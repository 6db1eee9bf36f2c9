package kv

import (
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/cache"
	"github.com/siftkv/siftkv/sstable"
)

// A memoryBudget keeps Options.MemoryLimit: the block cache gives way as open
// tables pin filters and indexes.
type memoryBudget struct {
	limit     int64 // for cache, filters and indexes together; 0: none
	cacheSize int64
	cache     *cache.Cache

	filters atomic.Int64 // bytes pinned by open tables
	indexes atomic.Int64
	refused atomic.Int64 // filters that were left on disk for want of room
}

func (m *memoryBudget) init(o *Options, c *cache.Cache) {
	m.cache, m.cacheSize = c, o.CacheSize
	if o.MemoryLimit > 0 {
		m.limit = max(o.MemoryLimit-int64(o.MaxMemtables)*o.MemtableSize, o.MemoryLimit/8)
	}
}

// admitFilter reports whether a table may pin a filter of size bytes. Filters
// may take half of the limit: a filter spares more reads than the blocks that
// its bytes could cache, but a store without any cache would starve.
func (m *memoryBudget) admitFilter(size int64) bool {
	if m.limit == 0 || m.filters.Load()+size <= m.limit/2 {
		return true
	}
	m.refused.Add(1)
	return false
}

func (m *memoryBudget) pin(r *sstable.Reader)   { m.add(r, 1) }
func (m *memoryBudget) unpin(r *sstable.Reader) { m.add(r, -1) }

func (m *memoryBudget) add(r *sstable.Reader, sign int64) {
	filter, index := r.PinnedBytes()
	pinned := m.filters.Add(sign*filter) + m.indexes.Add(sign*index)
	if m.limit > 0 {
		m.cache.Resize(min(m.cacheSize, max(m.limit-pinned, m.limit/16)))
	}
}
