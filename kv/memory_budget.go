package kv

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/falsepositives"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
)

// A MemoryBudget is a bound of memory that several stores of a process share: those that are opened with it in
// Options.MemoryBudget. It is safe for concurrent use, needs no closing, and keeps nothing when none of its stores is
// open. At its peak the process takes at most 1.25 times the budget, plus 24 MiB, half a MiB for each store, and what
// the program itself uses. It leaves out what Options.MemoryLimit does not count.
//
// Three eighths are for memtables. Each store may always have its MaxMemtables, of a quarter of an even share or 64
// KiB each, and never waits for what others have. The rest goes to the stores that write, in even shares. A store's
// next memtable is as large as that allows, and a store that writes alone gets nearly all. If there is too little for
// a new one, stores that write nothing are asked to flush theirs, the longest idle first. Then those that have more
// than their share are asked.
//
// An eighth, at most 16 MiB, is for the buffers of flushes and compactions. Over all stores one thread compacts for
// each 16 MiB of the budget, at most half of GOMAXPROCS and at least two; stores take turns. A flush has a thread of
// its own in each store, and never waits for others. Once a store in an object store is open, an eighth, at most 64
// MiB, is for what iterators prefetch. A 170th, 1.5 MiB at the most, is for the false positives that all stores
// remember (Options.FalsePositiveMemory). All else is for blocks, filters and indexes, in one cache: those of all
// stores compete as those of one store do.
//
// A store whose disk fails keeps its memtables until it can write them, but no more than it had; the others share the
// rest. A disk that neither works nor fails keeps the threads that wait for it.
type MemoryBudget struct {
	limit   int64
	threads int // that compact at the same time

	mu             sync.Mutex // taken after a store's mutex; no store's is taken under it
	shares         []*budgetShare
	readers        *version.Memory        // of the stores that are open; nil: there is none
	falsePositives *falsepositives.Memory // of the same
	gone           []*atomic.Int64        // memtables of stores that were closed before their last iterator
	given          int64                  // bytes of memtables that stores were given so far: a clock
	busy           int                    // threads that compact
	queue          []*threadWait          // for a thread

	parts sstable.Budget // of what iterators prefetch
}

// NewMemoryBudget returns a budget of the given bytes, at least 4 MiB: with less, Open fails. A store of default
// settings needs half a MiB of it at the least (see ErrMemoryBudget), and works well with 16 MiB or more.
func NewMemoryBudget(bytes int64) *MemoryBudget {
	threads := min(int64(runtime.GOMAXPROCS(0)/2), bytes/threadMemory)
	b := &MemoryBudget{limit: bytes, threads: int(max(threads, 2))}
	b.parts.Limit = min(bytes/8, maxParts)
	return b
}

// memtablesPart returns the bytes for the memtables of all stores.
func (b *MemoryBudget) memtablesPart() int64 { return b.limit / 8 * 3 }

// falsePositiveMemory returns the bytes of the memory of false positives, keys aside.
func (b *MemoryBudget) falsePositiveMemory() int64 { return falsePositivesOf(b.limit) }

// readersPart returns the bytes for blocks, filters and indexes of all stores.
func (b *MemoryBudget) readersPart(objects bool) int64 {
	rest := b.limit - b.memtablesPart() - buffersLimit(b.limit) - falsepositives.Most(b.falsePositiveMemory())
	if objects {
		rest -= b.parts.Limit
	}
	return rest
}

// minMemtable is the smallest MemtableSize, in bytes.
const minMemtable = 64 << 10

// leastBudget returns what a store with the given number of memtables needs of a budget, in bytes.
func leastBudget(memtables int64) int64 { return (memtables*minMemtable*8 + 2) / 3 }

// check refuses options that do not go together with a budget.
func (b *MemoryBudget) check(o *Options) error {
	switch {
	case b == nil:
		return nil
	case b.limit < minMemoryLimit:
		return invalidf("MemoryBudget is of %d bytes: want %d to %d", b.limit, minMemoryLimit, int64(math.MaxInt64))
	case o.MemoryLimit != 0:
		return invalidf("MemoryLimit and MemoryBudget are both set: want one of them")
	case o.CacheSize > 0:
		return invalidf("CacheSize is %d, and MemoryBudget is set, whose cache all stores share: "+
			"want 0, or a negative CacheSize for no cache", o.CacheSize)
	case o.FalsePositiveMemory > 0:
		return invalidf("FalsePositiveMemory is %d, and MemoryBudget is set, of which all stores share one: "+
			"want 0, or a negative FalsePositiveMemory for none", o.FalsePositiveMemory)
	}
	return nil
}

// join gives a store its share.
func (b *MemoryBudget) join(d *DB, o *Options) error {
	s := &budgetShare{b: b, d: d, weight: int64(o.MaxMemtables), most: o.MemtableSize, objects: o.Objects != nil,
		taken: new(atomic.Int64)}
	if o.ReadOnly {
		s.weight = 1
	}
	s.background = &threadWait{share: s}
	b.mu.Lock()
	defer b.mu.Unlock()
	others := int64(0)
	for _, other := range b.shares {
		others += leastBudget(other.weight)
	}
	if need := leastBudget(s.weight); others+need > b.limit {
		return fmt.Errorf("%w: it has %d bytes; %d stores are open and need %d, and this one needs %d: "+
			"want a budget of %d or more, or fewer stores at a time",
			ErrMemoryBudget, b.limit, len(b.shares), others, need, others+need)
	}
	if b.readers == nil {
		b.readers = version.NewMemory(b.readersPart(false), b.readersPart(false))
		b.falsePositives = falsepositives.New(b.falsePositiveMemory())
	}
	b.shares = append(b.shares, s)
	b.readers.SetLimit(b.readersPart(b.hasObjects()))
	d.share = s
	return nil
}

// hasObjects reports whether a store in an object store is open. The caller holds b.mu.
func (b *MemoryBudget) hasObjects() bool {
	for _, s := range b.shares {
		if s.objects {
			return true
		}
	}
	return false
}

// MemoryUsage says what a MemoryBudget is used for, in bytes.
type MemoryUsage struct {
	Limit         int64
	Stores        int   // that are open
	Memtables     int64 // in memory that was taken for them, with what is kept for the next ones
	Blocks        int64 // in the cache
	Filters       int64
	Indexes       int64
	Remembered    int64 // for false positives
	ReadAhead     int64 // by iterators, of stores in object stores
	Compactions   int   // threads that compact, now
	MaxCompaction int   // such threads at the most
}

// Bytes returns the sum of all parts.
func (u MemoryUsage) Bytes() int64 {
	return u.Memtables + u.Blocks + u.Filters + u.Indexes + u.Remembered + u.ReadAhead
}

// Usage returns what the budget is used for now. Buffers of flushes and compactions are not in it: they
// come and go, and their number is bounded.
func (b *MemoryBudget) Usage() MemoryUsage {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := MemoryUsage{Limit: b.limit, Stores: len(b.shares), Memtables: b.leftBehind(), ReadAhead: b.parts.Used(),
		Compactions: b.busy, MaxCompaction: b.threads}
	for _, s := range b.shares {
		u.Memtables += s.taken.Load() + s.replayed.Load()
	}
	if b.readers != nil {
		u.Blocks, _ = b.readers.Cache.Used()
		u.Filters, u.Indexes = b.readers.Pinned()
		u.Remembered = b.falsePositives.Bytes()
	}
	return u
}
