package tablecache

import (
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/cache"
)

// A Memory is what the readers of one store, or of several, have together: the block cache, and what filters and
// indexes pin. The block cache gives way to filters and indexes, up to half of the limit for filters and a quarter for
// indexes. If there are more filters, those that save most are in memory (filters.go); if there are more indexes, those
// of the tables in use (indexes.go), of any store. It is safe for concurrent use.
type Memory struct {
	Cache     *cache.Cache
	CacheSize int64
	limit     atomic.Int64 // of bytes for blocks, filters and indexes together

	filters atomic.Int64 // bytes pinned by open tables
	indexes atomic.Int64 // bytes pinned by open tables
	skipped atomic.Int64 // filters of open tables that are on disk for want of room

	clock   clock
	retired atomic.Int64 // bytes of filters that gave way and may be in use
	sizing  sync.Mutex
	size    int64 // of the block cache, as it was last set; guarded by sizing
}

// NewMemory returns a Memory with a limit of bytes for blocks, filters and indexes together, and a
// cache of at most cacheSize of them, on which it has the reference.
func NewMemory(limit, cacheSize int64) *Memory {
	m := &Memory{Cache: cache.New(cacheSize), CacheSize: cacheSize}
	m.limit.Store(limit)
	return m
}

// SetLimit changes the limit. The excess goes as readers come and go.
func (m *Memory) SetLimit(limit int64) {
	m.limit.Store(limit)
	m.resize()
}

// Limit returns the bytes for blocks, filters and indexes together.
func (m *Memory) Limit() int64 { return m.limit.Load() }

// Pinned returns the bytes of filters and indexes of open tables.
func (m *Memory) Pinned() (filters, indexes int64) { return m.filters.Load(), m.indexes.Load() }

// resize gives the block cache what filters and indexes leave. It does so in steps of a part
// of the limit: to change the cache's size takes time in proportion to its blocks.
func (m *Memory) resize() {
	m.sizing.Lock() // else the cache could end up with what an earlier change left
	defer m.sizing.Unlock()
	limit := m.limit.Load()
	step := max(limit/64, 1)
	pinned := m.filters.Load() + m.indexes.Load()
	size := min(m.CacheSize, max(limit-(pinned+step-1)/step*step, limit/16))
	if m.size != size {
		m.size = size
		m.Cache.Resize(size)
	}
}
