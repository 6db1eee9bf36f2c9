package kv

import (
	"fmt"

	"github.com/siftkv/siftkv/internal/budget"
	"github.com/siftkv/siftkv/internal/cache"
	"github.com/siftkv/siftkv/internal/falsepositives"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/tablecache"
)

// readersLimit returns how many bytes of MemoryLimit are for blocks, filters and indexes; 0 if there is no limit.
func (o *Options) readersLimit() int64 {
	if o.MemoryLimit <= 0 {
		return 0
	}
	shared := int64(o.MaxMemtables)*o.MemtableSize + budget.Buffers(o.MemoryLimit)
	if o.Objects != nil {
		shared += o.partsLimit()
	}
	if o.FalsePositiveMemory > 0 {
		shared += falsepositives.Most(o.FalsePositiveMemory)
	}
	return max(o.MemoryLimit-shared, o.MemoryLimit/8)
}

// A storeMemory is what bounds the memory of a store. Its parts are safe for concurrent use.
type storeMemory struct {
	cache          *cache.Cache
	memtables      memtable.Memory
	tables         *tablecache.Memory     // bounds filters and indexes; nil: nothing does
	falsePositives *falsepositives.Memory // nil: they are not remembered; or that of the MemoryBudget
	share          *budget.Share          // of Options.MemoryBudget; nil: there is none
}

// shareMemory gives the store its cache, and what bounds its filters and indexes and counts its memtables: those of its
// MemoryBudget, or its own.
func (d *DB) shareMemory() error {
	o := &d.opts
	if o.FalsePositiveMemory >= 0 {
		d.memory.falsePositives = falsepositives.New(o.FalsePositiveMemory)
	}
	switch b := o.MemoryBudget; {
	case b != nil:
		if err := d.join(b.memory); err != nil {
			return err
		}
		d.memory.tables, d.memory.memtables.Taken = d.memory.share.Readers, d.memory.share.Taken
		if d.memory.falsePositives != nil {
			d.memory.falsePositives = d.memory.share.FalsePositives
		}
		if o.CacheSize >= 0 {
			d.memory.cache = d.memory.tables.Cache.Retain()
			return nil
		}
		d.memory.cache = cache.New(0)
	case o.MemoryLimit > 0:
		d.memory.tables = tablecache.NewMemory(o.readersLimit(), o.CacheSize)
		d.memory.cache = d.memory.tables.Cache
	default:
		d.memory.cache = cache.New(o.CacheSize)
	}
	d.memory.memtables.Keep = int(o.memtableArena())
	return nil
}

// partsLimit returns how many bytes of sorted files iterators on an object store may prefetch, all together: 64 MiB,
// or an eighth of a limit if that is less.
func (o *Options) partsLimit() int64 {
	switch {
	case o.MemoryBudget != nil:
		return o.MemoryBudget.memory.Parts().Limit
	case o.MemoryLimit <= 0:
		return budget.MaxParts
	}
	return min(o.MemoryLimit/8, budget.MaxParts)
}

// maxFolded returns the size of the largest value with which a flush or compaction combines operands: it has the value
// and the result in memory.
func (o *Options) maxFolded() int64 {
	switch {
	case o.MemoryBudget != nil:
		return budget.Buffers(o.MemoryBudget.memory.Limit()) / 2
	case o.MemoryLimit > 0:
		return budget.Buffers(o.MemoryLimit) / 2
	}
	return MaxValueSize
}

// groupBytes bounds what is committed at once: a memtable of it should not be larger than usual.
func (o *Options) groupBytes() int {
	if o.MemoryBudget != nil {
		return int(min(o.MemtableSize/4, maxSharedGroup))
	}
	return int(o.MemtableSize / 4)
}

// ownTable is the size in a memtable, in bytes, at which a batch gets one of its own.
func (o *Options) ownTable() int {
	if o.harness.OwnTableFrom > 0 {
		return o.harness.OwnTableFrom
	}
	return int(o.memtableArena() / 2)
}

// maxSharedGroup bounds a group of a store with a MemoryBudget, whose memtables may become small.
const maxSharedGroup = 256 << 10

// maxCachedBlock is the largest BlockSize of a store that has a cache.
const maxCachedBlock = 1 << 20

// checkBlocksFit refuses blocks that the cache could not keep: each lookup would read and decode one, and nothing would
// say why. A cache keeps blocks of up to a quarter of its size and 2 MiB. Half of that leaves room for the entry with
// which a block goes beyond BlockSize.
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
