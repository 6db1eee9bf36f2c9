package cache

import "sync/atomic"

// An Owner counts the blocks that one of several users of a cache has in it. A nil Owner counts nothing: the cache has
// one user, and Used says as much.
type Owner struct{ units, blocks atomic.Int64 }

func (o *Owner) add(units, blocks int64) {
	if o != nil {
		o.units.Add(units)
		o.blocks.Add(blocks)
	}
}

// Used returns the bytes of the owner's blocks, and their number.
func (o *Owner) Used() (bytes int64, blocks int) {
	return o.units.Load() << unitShift, int(o.blocks.Load())
}

// Sweep forgets what blocks that were dropped have left behind. It takes time in proportion to all blocks. Call it when
// a user of the cache goes: otherwise the ring keeps the user's slots reachable until the hand has passed all blocks.
func (c *Cache) Sweep() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.ring.sweep()
		s.mu.Unlock()
	}
}
