package kv

import "fmt"

// readersLimit returns how many bytes of MemoryLimit are for blocks, filters and indexes; 0
// if there is no limit.
func (o *Options) readersLimit() int64 {
	if o.MemoryLimit <= 0 {
		return 0
	}
	shared := int64(o.MaxMemtables)*o.MemtableSize + buffersLimit(o.MemoryLimit)
	if o.Objects != nil {
		shared += o.partsLimit()
	}
	return max(o.MemoryLimit-shared, o.MemoryLimit/8)
}

// partsLimit returns how many bytes of sorted files iterators on an object store may have read ahead, all together:
// 64 MiB, or an eighth of a MemoryLimit.
func (o *Options) partsLimit() int64 {
	if o.MemoryLimit <= 0 {
		return maxParts
	}
	return min(o.MemoryLimit/8, maxParts)
}

const maxParts = 64 << 20

// buffersLimit returns how many bytes of a MemoryLimit are for what flushes and compactions
// hold: above all the hashes of a new file's keys, of which its filter is made.
func buffersLimit(limit int64) int64 { return min(limit/8, 16<<20) }

// maxCachedBlock is the largest BlockSize of a store that has a cache.
const maxCachedBlock = 1 << 20

// checkBlocksFit refuses blocks that the cache could not keep: each lookup would read
// and decode one, and nothing would say why. A cache keeps blocks of up to a quarter of
// its size and 2 MiB; half of that leaves room for the entry with which a block goes beyond
// BlockSize.
func (o *Options) checkBlocksFit() error {
	switch minCache := 8 * int64(o.BlockSize); {
	case o.CacheSize < 0 || o.ReadOnly:
		return nil
	case o.BlockSize > maxCachedBlock:
		return fmt.Errorf("%w: BlockSize is %d: no cache keeps such blocks; want 64 to %d bytes, "+
			"or a negative CacheSize for no cache", ErrInvalidOptions, o.BlockSize, maxCachedBlock)
	case o.CacheSize < minCache:
		return fmt.Errorf("%w: CacheSize is %d and BlockSize is %d: such a cache keeps no such block; "+
			"want CacheSize of %d or more, a negative one for no cache, or smaller blocks",
			ErrInvalidOptions, o.CacheSize, o.BlockSize, minCache)
	}
	return nil
}
