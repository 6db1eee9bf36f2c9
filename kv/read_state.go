package kv

import (
	"slices"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/operand"
	"github.com/siftkv/siftkv/internal/storeview"
	"github.com/siftkv/siftkv/internal/version"
)

// A readState is all that a reader needs: memtables and tables as of one moment. It is replaced, never changed. A
// reader takes a reference on one stripe, which costs two uncontended atomic operations per lookup, however many files
// there are. The state's tables and memtables are released when the last reference of a replaced state is gone.
type readState struct {
	mem      *memTable
	imms     []*memTable // being flushed, newest first
	version  *version.Version
	limit    base.SeqNum // readers see no later write, although there may be some
	operands operand.Combiner
	cleaner  *version.Cleaner

	refs     [counters.NumStripes]paddedCount
	replaced atomic.Bool
	released atomic.Bool
}

type paddedCount struct {
	n atomic.Int64
	_ [120]byte // two lines: the prefetcher fetches pairs
}

// acquire returns the current state and takes a reference on the stripe, or nil if reads fail: see unreadable.
func (d *DB) acquire(stripe int) *readState {
	s, _, _ := d.present.enter(stripe)
	return s
}

// release releases a reference.
func (s *readState) release(stripe int) {
	if s.refs[stripe].n.Add(-1) == 0 && s.replaced.Load() && s.unused() {
		s.unrefMemtables()
		s.cleaner.Release(s.version)
	}
}

// unused reports, once, that a replaced state is no longer used. No reader can join a replaced state for good, so
// stripes that are seen empty one after the other are all empty.
func (s *readState) unused() bool {
	for i := range s.refs {
		if s.refs[i].n.Load() != 0 {
			return false
		}
	}
	return s.released.CompareAndSwap(false, true)
}

// unrefMemtables releases the memtables of a state that is no longer used.
func (s *readState) unrefMemtables() {
	s.mem.Unref()
	for _, m := range s.imms {
		m.Unref()
	}
}

// swapState makes next the current state and releases the old one. It may be nil:
// the store is closed. The caller holds d.mu.
func (d *DB) swapState(next *readState) {
	if old := d.refusal.swapState(&d.state, next); old != nil {
		old.replaced.Store(true)
		if old.unused() {
			old.unrefMemtables()
			d.cleaner.Unref(old.version)
		}
	}
}

// dropState releases the current state and version: the store is closed.
func (d *DB) dropState() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swapState(nil)
	if d.current != nil {
		d.cleaner.Unref(d.current)
		d.current = nil
	}
}

// installState makes a state of the current memtables and version. The caller holds d.mu.
func (d *DB) installState() {
	s := &readState{mem: d.mem, version: d.current, limit: d.limit, operands: d.operands,
		cleaner: &d.cleaner}
	for _, m := range slices.Backward(d.imms) {
		s.imms = append(s.imms, m)
		m.Ref()
	}
	s.mem.Ref()
	d.current.Ref()
	d.swapState(s)
	d.noteRoom()
}

// installVersion makes v, which was made of the current version, the current one. The
// caller holds d.mu and calls installState.
func (d *DB) installVersion(v *version.Version) {
	d.cleaner.History.Install(v)
	old := d.current
	d.current = v
	if old != nil {
		d.cleaner.Unref(old)
	}
}

// tombstoneCover returns the newest range tombstone over key that a reader at
// sequence number at sees; 0 if there is none.
func (s *readState) tombstoneCover(d *DB, key []byte, at base.SeqNum) (base.SeqNum, error) {
	cover := s.mem.Tombstones().Cover(key, at)
	for _, m := range s.imms {
		cover = max(cover, m.Tombstones().Cover(key, at))
	}
	if !s.version.HasTombstones() {
		return cover, nil
	}
	inTables, err := s.version.TombstoneCover(&d.tables, key, at)
	return max(cover, inTables), err
}

// hasTombstones reports whether there is any range tombstone.
func (s *readState) hasTombstones() bool {
	if s.version.HasTombstones() || s.mem.HasTombstones() {
		return true
	}
	for _, m := range s.imms {
		if m.HasTombstones() {
			return true
		}
	}
	return false
}

func init() {
	storeview.Of = func(db any) (*storeview.View, error) { return storeViewOf(db.(*DB)) }
}

// storeViewOf returns a view of the present state of d, for packages that examine a store.
func storeViewOf(d *DB) (*storeview.View, error) {
	s, _, now := d.present.enter(0)
	if s == nil {
		return nil, d.unreadable()
	}
	o := &d.opts
	return &storeview.View{
		Version: s.version, Tables: &d.tables, Seq: now, Sampler: d.watch.Sampler(),
		Filters: o.filterPlan(), Compaction: o.compaction(),
		Blocks: storeview.Blocks{Size: o.BlockSize, Cache: max(o.CacheSize, 0),
			Remembered: max(o.FalsePositiveMemory, 0), SharedMemory: o.MemoryLimit > 0 || o.MemoryBudget != nil},
		Memtables: func(key []byte, hash uint64) (m storeview.InMemory, err error) {
			l := lookup{d: d, key: key, hash: hash, at: now}
			if m.Answered, err = l.inMemory(s); l.chain.begun {
				l.found, err = l.combine(s, err)
			}
			m.Found, m.Cover = l.found, l.cover
			return m, err
		},
		Release: func() { s.release(0) },
	}, nil
}
