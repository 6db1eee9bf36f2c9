package kv

import (
	"fmt"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/cache"
	"github.com/siftkv/siftkv/internal/sstable"
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

// maxCachedBlock is the largest BlockSize of a store that has a cache.
const maxCachedBlock = 1 << 20

// checkBlocksFit refuses blocks that the cache could not keep: each lookup would read
// and decode one, and nothing would say why. A cache keeps blocks of up to a quarter of
// its size and 2 MiB; half of that leaves room for the entry with which a block goes beyond
// BlockSize.
func (o *Options) checkBlocksFit() error {
	switch least := 8 * int64(o.BlockSize); {
	case o.CacheSize < 0 || o.ReadOnly:
		return nil
	case o.BlockSize > maxCachedBlock:
		return fmt.Errorf("%w: BlockSize is %d: no cache keeps such blocks; want 64 to %d bytes, or a negative CacheSize for no cache", ErrInvalidOptions, o.BlockSize, maxCachedBlock)
	case o.CacheSize < least:
		return fmt.Errorf("%w: CacheSize is %d and BlockSize is %d: such a cache keeps no such block; want CacheSize of %d or more, a negative one for no cache, or smaller blocks", ErrInvalidOptions, o.CacheSize, o.BlockSize, least)
	}
	return nil
}
