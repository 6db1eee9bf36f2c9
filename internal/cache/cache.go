// Package cache keeps blocks of tables in memory, up to a number of bytes.
//
// There is no hash table. Every table owns one Slot per block, and a block is
// found by its number: a hit is one atomic load and takes no lock. The cache
// itself only decides what stays. It is a set of CLOCK rings (Corbató 1968):
// a hit marks its block, the hand spares a marked block once, and a new block
// starts unmarked, so that one scan cannot push out what is read again and again.
package cache

import (
	"sync"
	"sync/atomic"
)

// blockOverhead is what one cached block costs beside its bytes: the Block,
// its place in a ring and the allocator's rounding.
const blockOverhead = 96

// minShardBytes keeps a ring large enough for CLOCK to have a choice; maxShards
// bounds the number of locks. Only misses take a lock, so few are enough.
const (
	minShardBytes = 2 << 20
	maxShards     = 16
)

// A Slot is the place of one block of one table. The zero value is empty.
type Slot struct{ block atomic.Pointer[Block] }

// Get returns the cached block, or nil. It is safe for concurrent use.
func (s *Slot) Get() *Block {
	b := s.block.Load()
	// The mark is written once per turn of the clock, not once per hit, so that
	// a hot block's cache line stays shared between cores.
	if b != nil && b.marked.Load() == 0 {
		b.marked.Store(1)
	}
	return b
}

// A Block is a block's bytes. Data never changes, and stays valid for whoever
// holds it, cached or not: eviction forgets a block, the collector frees it.
type Block struct {
	Data   []byte
	marked atomic.Uint32
	slot   *Slot
	pos    int // in its ring; guarded by the shard's lock
}

func (b *Block) size() int64 { return int64(len(b.Data)) + blockOverhead }

// A Cache bounds the bytes of all blocks added to it. It is safe for concurrent
// use. A nil Cache keeps nothing.
type Cache struct {
	shards []shard
}

type shard struct {
	mu       sync.Mutex
	capacity int64
	used     int64
	ring     []*Block // nil where free
	free     []int    // free positions of ring
	hand     int
	_        [32]byte // keep neighbours' locks apart
}

// New returns a cache of capacity bytes. Zero or less keeps nothing.
func New(capacity int64) *Cache {
	n := int(min(max(capacity/minShardBytes, 1), maxShards))
	c := &Cache{shards: make([]shard, n)}
	c.Resize(capacity)
	return c
}

// Resize changes the capacity and evicts down to it.
func (c *Cache) Resize(capacity int64) {
	each := max(capacity, 0) / int64(len(c.shards))
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.capacity = each
		s.evictTo(each)
		s.mu.Unlock()
	}
}

// Add puts data into the slot and returns its block. If another reader was
// faster, that reader's block is returned. The cache keeps data. Key names the
// block (any number that is always the same for the slot); it spreads blocks
// over the rings. A block too large for its ring is returned but not kept.
func (c *Cache) Add(key uint64, slot *Slot, data []byte) *Block {
	b := &Block{Data: data, slot: slot, pos: -1}
	if c == nil {
		return b
	}
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if present := slot.block.Load(); present != nil {
		return present
	}
	if b.size() > s.capacity {
		return b
	}
	s.evictTo(s.capacity - b.size())
	s.insert(b)
	slot.block.Store(b)
	return b
}

// Drop empties a slot: its table is closed.
func (c *Cache) Drop(key uint64, slot *Slot) {
	if c == nil || slot.block.Load() == nil {
		return
	}
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := slot.block.Load(); b != nil {
		s.remove(b)
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
		bytes += s.used
		blocks += len(s.ring) - len(s.free)
		s.mu.Unlock()
	}
	return bytes, blocks
}

func (c *Cache) shard(key uint64) *shard {
	h := key * 0x9e3779b97f4a7c15
	return &c.shards[(h>>32)*uint64(len(c.shards))>>32]
}

// insert puts b where the hand took a block out last, just behind the hand, so that
// it has a whole turn to be marked. A ring that is not full yet grows at its end.
func (s *shard) insert(b *Block) {
	if n := len(s.free); n > 0 {
		b.pos = s.free[n-1]
		s.free = s.free[:n-1]
		s.ring[b.pos] = b
	} else {
		b.pos = len(s.ring)
		s.ring = append(s.ring, b)
	}
	s.used += b.size()
}

func (s *shard) remove(b *Block) {
	b.slot.block.Store(nil)
	s.ring[b.pos] = nil
	s.free = append(s.free, b.pos)
	s.used -= b.size()
}

// evictTo turns the clock until at most limit bytes are in use. Every turn
// clears marks, so it ends after two turns at the most.
func (s *shard) evictTo(limit int64) {
	for s.used > max(limit, 0) {
		if s.hand >= len(s.ring) {
			s.hand = 0
		}
		b := s.ring[s.hand]
		s.hand++
		switch {
		case b == nil:
		case b.marked.Load() != 0:
			b.marked.Store(0)
		default:
			s.remove(b)
		}
	}
}
