package kv

import (
	"slices"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/cache"
)

// A budgetShare is what one store has of a MemoryBudget, from Open to Close. A nil one is that of a
// store without a budget.
type budgetShare struct {
	b       *MemoryBudget
	d       *DB
	weight  int64 // memtables that the store may have
	most    int64 // bytes of one: Options.MemtableSize
	objects bool

	blocks   cache.Owner
	taken    *atomic.Int64 // bytes of memtables
	replayed atomic.Int64  // bytes of memtables that are in the heap: what recovery and followers read from logs

	// Guarded by b.mu.
	promised int64 // bytes of memtables that are about to be taken
	writes   uint64
	wrote    bool  // since the store was opened
	wroteAt  int64 // when the number of writes was last seen to have grown, by b.given
	writing  bool  // it is open, and may be asked to give up what it has too much
	asked    bool  // it was asked

	background *threadWait // of automatic compactions
}

// leave releases the share. Nothing uses the store any more, except iterators that were left open: what they have
// stays counted until they are closed.
func (s *budgetShare) leave() {
	if s == nil {
		return
	}
	b := s.b
	s.background.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.shares, s)
	if i < 0 {
		return
	}
	b.shares = slices.Delete(b.shares, i, i+1)
	if s.taken.Load() > 0 {
		b.gone = append(b.gone, s.taken)
	}
	if len(b.shares) > 0 {
		b.readers.SetLimit(b.readersPart(b.hasObjects()))
		b.readers.Cache.Sweep()
		return
	}
	b.readers.Cache.Release() // tables of open iterators keep it
	b.readers, b.falsePositives = nil, nil
}

// begin says that the store is open.
func (s *budgetShare) begin() {
	if s == nil || s.d.opts.ReadOnly {
		return
	}
	s.b.mu.Lock()
	s.writing = true
	s.b.mu.Unlock()
}

// bytes returns what the store has of its budget; 0 without one.
func (s *budgetShare) bytes(d *DB) int64 {
	if s == nil {
		return 0
	}
	blocks, _ := s.blocks.Used()
	return s.taken.Load() + s.replayed.Load() + blocks + d.tables.Filters.Load() + d.tables.Indexes.Load() +
		d.tables.Parts.Used()
}

// replay counts memtables in the heap, n bytes more than before.
func (s *budgetShare) replay(n int64) {
	if s != nil {
		s.replayed.Add(n)
	}
}

// replaysOnly counts n bytes of memtables in the heap and no others.
func (s *budgetShare) replaysOnly(n int64) {
	if s != nil {
		s.replayed.Store(n)
	}
}

// replayArena returns the arena of a memtable that is filled from a log.
func (d *DB) replayArena() int64 {
	if d.share == nil {
		return d.opts.memtableArena()
	}
	return d.share.evenArena()
}

// wake lets the store use a thread that it was given.
func (s *budgetShare) wake() {
	s.d.scheduleCompactions()
	s.background.giveBack()  // if nothing is left to do: no other store must wait for it
	s.d.progress.Broadcast() // after that
}
