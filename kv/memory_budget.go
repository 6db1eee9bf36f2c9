package kv

import (
	"context"
	"math"

	"github.com/siftkv/siftkv/internal/budget"
	"github.com/siftkv/siftkv/kv/metrics"
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
type MemoryBudget struct{ memory *budget.Memory }

// NewMemoryBudget returns a budget of the given bytes, at least 4 MiB: with less, Open fails. A store of default
// settings needs half a MiB of it at the least (see ErrMemoryBudget), and works well with 16 MiB or more.
func NewMemoryBudget(bytes int64) *MemoryBudget { return &MemoryBudget{budget.New(bytes)} }

// check refuses options that do not go together with a budget.
func (b *MemoryBudget) check(o *Options) error {
	switch {
	case b == nil:
		return nil
	case b.memory.Limit() < budget.MinMemory:
		return invalidf("MemoryBudget is of %d bytes: want %d to %d", b.memory.Limit(), budget.MinMemory,
			int64(math.MaxInt64))
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

// Usage returns what the budget is used for now. Buffers of flushes and compactions are not in it: they
// come and go, and their number is bounded.
func (b *MemoryBudget) Usage() metrics.Budget { return b.memory.Usage() }

// join gives the store its share of a budget.
func (d *DB) join(b *budget.Memory) (err error) {
	memtables := int64(d.opts.MaxMemtables)
	if d.opts.ReadOnly {
		memtables = 1
	}
	d.memory.share, err = b.Join(budget.Store{
		Memtables: memtables, MemtableSize: d.opts.MemtableSize, Objects: d.opts.Objects != nil,
		Writes: &d.commits.Writes, Failed: &d.resumer.failed, Kept: d.memory.memtables.Kept,
		GiveUp: func() {
			d.memory.memtables.SetKeep(0)
			_ = d.commits.Exclusive(context.Background(), func() error { // a store that fails tells its writers
				return d.rotateIf(func(m *memTable) bool { return d.memory.share.TooLarge(m.Bytes()) })
			})
		},
		Wake: func() { // if nothing is left to do, no other store waits for the thread
			d.scheduleCompactions()
			d.memory.share.Background().Decline()
			d.progress.Broadcast()
		},
	})
	return err
}
