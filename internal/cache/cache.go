// Package cache keeps blocks of tables in memory, up to a number of bytes.
//
// There is no hash table. Every table owns one Slot per block, and a block is found by its number. A Slot is one word:
// where the block is, how long it is, and how many readers have it pinned. A hit is one load and one compare-and-swap
// on that word and takes no lock; the word leads to the bytes, with no structure in between that would be another cache
// miss.
//
// The bytes are in one region outside the Go heap, in huge pages if the system has them. So the collector never sees
// the cache, which would otherwise count twice (GOGC). A random read of a large cache waits less for address
// translation: 122 ns instead of 178 in 160 MB. Memory is used again at once, so a block must be pinned while its bytes
// are in use.
//
// Blocks are evicted as by CLOCK (Corbató 1968): a hit marks its block, and a marked block is kept once more. A new
// block starts unmarked, so one scan cannot evict what is read again and again. See ring.go.
package cache

import (
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/offheap"
)

// minShardBytes keeps a ring large enough for CLOCK to have a choice; maxShards bounds the number of locks. Only misses
// take a lock, so few are enough.
const (
	minShardBytes = 16 << 20
	maxShards     = 16
)

// maxCapacity is what the offsets of a Slot reach.
const maxCapacity = 1 << (offsetBits + unitShift)

// A Cache bounds the bytes of all blocks added to it. It is safe for concurrent use. A nil Cache keeps nothing.
type Cache struct {
	mem     []byte          // set once, before the first block is published
	region  *offheap.Region // that has mem
	reserve sync.Once
	shards  []shard
	refs    atomic.Int64
	size    int64 // of mem

	capacity atomic.Int64
}

// New returns a cache of capacity bytes with one reference. Zero or less keeps nothing. Memory is taken as it is
// needed.
func New(capacity int64) *Cache {
	capacity = min(max(capacity, 0), maxCapacity)
	n := int(min(max(capacity/minShardBytes, 1), maxShards))
	each := capacity / int64(n) >> unitShift
	c := &Cache{shards: make([]shard, n), size: int64(n) * each << unitShift}
	for i := range c.shards {
		s := &c.shards[i]
		s.ring.base, s.ring.units = uint32(int64(i)*each), uint32(each)
		s.ring.limit = s.ring.units
	}
	c.capacity.Store(c.size)
	c.refs.Store(1)
	return c
}

// Retain takes a reference and returns the cache, or nil if the last one is gone. The memory is released with the last
// one.
func (c *Cache) Retain() *Cache {
	if c == nil {
		return nil
	}
	for n := c.refs.Load(); n > 0; n = c.refs.Load() {
		if c.refs.CompareAndSwap(n, n+1) {
			return c
		}
	}
	return nil
}

// Release releases a reference. With the last one all blocks go: bytes of the cache must not be used any more.
func (c *Cache) Release() {
	if c == nil || c.refs.Add(-1) != 0 {
		return
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.ring = ring{}
		s.mu.Unlock()
	}
	if c.region != nil {
		c.region.Free()
	}
	c.mem, c.region = nil, nil
}

// Resize changes the capacity, up to that of New, and evicts down to it.
func (c *Cache) Resize(capacity int64) {
	capacity = min(max(capacity, 0), c.size)
	c.capacity.Store(capacity)
	each := capacity / int64(len(c.shards)) >> unitShift
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		if shrunk := s.ring.resize(uint32(each)); shrunk && s.ring.written {
			from := int64(s.ring.base+s.ring.limit) << unitShift
			to := int64(s.ring.base+s.ring.units) << unitShift
			c.region.Discard(from, to)
		}
		s.mu.Unlock()
	}
}

// Capacity returns how many bytes the cache keeps at most; none of a nil cache.
func (c *Cache) Capacity() int64 {
	if c == nil {
		return 0
	}
	return c.capacity.Load()
}

// MaxBlock returns the size of the largest block that the cache takes, in bytes, with its current capacity. That is a
// quarter of a ring, so that eviction has a choice, or the largest length in a Slot. It is 0 if the cache keeps
// nothing.
func (c *Cache) MaxBlock() int {
	if c == nil {
		return 0
	}
	each := c.capacity.Load() / int64(len(c.shards)) >> unitShift
	return int(min(each/maxRingPart<<unitShift, maxLength))
}

// Pin returns the block in the slot, and keeps its bytes valid until Unpin. It reports false if there is none, or none
// that could be had without waiting.
func (c *Cache) Pin(s *Slot) (data []byte, ok bool) {
	for w := s.word.Load(); w.pinnable(); w = s.word.Load() {
		if s.word.CompareAndSwap(w, w.pinned()) {
			at := w.offset()
			return c.mem[at : at+w.length() : at+w.length()], true
		}
	}
	return nil, false
}

// Reserve makes room for a block of n bytes and returns the bytes to fill. The caller then calls Publish or Abandon on
// the slot. Nil means that the block cannot be kept: it is too large, another reader has filled the slot or is filling
// it, or the system refuses the cache its memory. Key names the block (any number that is always the same for the
// slot); it spreads blocks over the rings. The block is counted for the owner, as long as it is there; Abandon and Drop
// get the same one.
func (c *Cache) Reserve(key uint64, slot *Slot, n int, owner *Owner) []byte {
	return c.ReserveMore(key, slot, n, 0, false, owner)
}

// ReserveMore is Reserve with a capacity of more bytes than n, which the caller may write to until Publish, and which
// are not kept: what a file has after the block. A block that is cheap to read again evicts others only if it was
// missed not long ago. To insert one that no reader asks for again is work for nothing.
func (c *Cache) ReserveMore(key uint64, slot *Slot, n, more int, cheap bool, owner *Owner) []byte {
	if c == nil || n <= 0 || n > maxLength || int64(n+more) > c.size {
		return nil
	}
	c.reserve.Do(func() {
		if region, ok := offheap.Reserve(c.size); ok {
			c.mem, c.region = region.Bytes(), region
		}
	})
	if c.mem == nil {
		return nil
	}
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	empty := slot.word.Load()
	if !empty.empty() || cheap && !s.ring.admits(slot, empty, unitsOf(n)) {
		return nil
	}
	units := unitsOf(n + more)
	at, ok := s.ring.allocate(c.mem, units)
	if !ok {
		return nil
	}
	w := makeWord(at, n)
	if !slot.word.CompareAndSwap(empty, w.busy()) {
		return nil
	}
	s.ring.push(entry{slot: slot, owner: owner, at: at, units: units}, unitsOf(n))
	return c.mem[w.offset() : w.offset()+n : w.offset()+n+more]
}

// Drop empties the slot of a closed table. It must not be pinned.
func (c *Cache) Drop(key uint64, slot *Slot, owner *Owner) {
	if c == nil || slot.word.Load().empty() {
		return
	}
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := slot.word.Load(); !w.empty() && slot.word.CompareAndSwap(w.unpinned(), 0) {
		s.ring.forget(w, owner)
	}
}

// Used returns the bytes in use and the number of blocks.
func (c *Cache) Used() (bytes int64, blocks int) {
	if c == nil {
		return 0, 0
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		bytes += s.ring.used << unitShift
		blocks += s.ring.blocks
		s.mu.Unlock()
	}
	return bytes, blocks
}

type shard struct {
	mu   sync.Mutex
	ring ring
	_    [64]byte // keep locks on different cache lines
}

func (c *Cache) shard(key uint64) *shard {
	h := key * 0x9e3779b97f4a7c15
	return &c.shards[(h>>32)*uint64(len(c.shards))>>32]
}
