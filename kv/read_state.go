package kv

import (
	"slices"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/version"
)

// numStripes spreads what all readers write (reference counts and counters) over
// cache lines of their own, so that readers on several cores do not wait for one
// line. A lookup picks its stripe by the hash of its key.
const numStripes = 16

// A readState is all that a reader needs: memtables and tables as of one moment.
// It is replaced, never changed. A reader takes a reference on one stripe, which
// costs two uncontended atomic operations per lookup, however many files there
// are; the state's tables are given back when the last reference of a replaced
// state is gone.
type readState struct {
	mem     *memTable
	imms    []*memTable // being flushed, newest first
	version *version.Version
	limit   base.SeqNum // readers see no later write, although there may be some
	operandMerger

	refs     [numStripes]paddedCount
	replaced atomic.Bool
	released atomic.Bool
}

type paddedCount struct {
	n atomic.Int64
	_ [120]byte // two lines: the prefetcher fetches pairs
}

// acquire returns the current state and takes a reference on the stripe, or nil
// if the store is closed.
func (d *DB) acquire(stripe int) *readState {
	for {
		s := d.state.Load()
		if s == nil {
			return nil
		}
		s.refs[stripe].n.Add(1)
		// The reference counts only if the state was current after it was taken:
		// then whoever replaced the state later sees it.
		if d.state.Load() == s {
			return s
		}
		d.release(s, stripe)
	}
}

// release gives a reference back.
func (d *DB) release(s *readState, stripe int) {
	if s.refs[stripe].n.Add(-1) == 0 && s.replaced.Load() && s.unused() {
		d.mu.Lock()
		d.unrefVersion(s.version)
		d.mu.Unlock()
		if d.closed.Load() {
			// The cleaner may have ended: the last reader closes the tables.
			if err := d.cleaner.Drain(); err != nil {
				d.log.Warn("a table could not be closed", "error", err)
			}
		}
	}
}

// unused reports, once, that nobody uses a replaced state any more. No reader can
// join a replaced state for good, so stripes that are seen empty one after the
// other are all empty.
func (s *readState) unused() bool {
	for i := range s.refs {
		if s.refs[i].n.Load() != 0 {
			return false
		}
	}
	return s.released.CompareAndSwap(false, true)
}

// swapState makes next the current state and gives the old one up. It may be nil:
// the store is closed. The caller holds d.mu.
func (d *DB) swapState(next *readState) {
	if old := d.state.Swap(next); old != nil {
		old.replaced.Store(true)
		if old.unused() {
			d.unrefVersion(old.version)
		}
	}
}

// installState makes a state of the current memtables and version. The caller
// holds d.mu.
func (d *DB) installState() {
	s := &readState{mem: d.mem, version: d.current, limit: d.limit, operandMerger: d.operands}
	for _, m := range slices.Backward(d.imms) {
		s.imms = append(s.imms, m)
	}
	d.current.Refs++
	d.swapState(s)
}

// installVersion makes v the current version, which shares tables with the one
// before. The caller holds d.mu and calls installState.
func (d *DB) installVersion(v *version.Version) {
	v.Refs++
	v.All(func(_ int, t *version.Table) { t.Refs++ })
	old := d.current
	d.current = v
	if old == nil {
		return
	}
	listed := map[*version.Table]bool{}
	v.All(func(_ int, t *version.Table) { listed[t] = true })
	old.All(func(_ int, t *version.Table) { t.Obsolete = !listed[t] })
	d.unrefVersion(old)
}

// unrefVersion gives up a reference of a version. Tables that no version lists
// any more are closed, and removed if they are obsolete. The caller holds d.mu.
func (d *DB) unrefVersion(v *version.Version) {
	if v.Refs--; v.Refs > 0 {
		return
	}
	v.All(func(_ int, t *version.Table) {
		if t.Refs--; t.Refs == 0 {
			d.cleaner.Table(t)
		}
	})
}

// tombstoneCover returns the newest range tombstone over key that a reader at
// sequence number at sees; 0 if there is none.
func (s *readState) tombstoneCover(d *DB, key []byte, at base.SeqNum) (base.SeqNum, error) {
	set, err := s.version.Tombstones(&d.tables)
	if err != nil {
		if set, err = s.version.TombstonesOver(&d.tables, key); err != nil {
			return 0, err
		}
	}
	cover := max(set.Cover(key, at), s.mem.Tombstones().Cover(key, at))
	for _, m := range s.imms {
		cover = max(cover, m.Tombstones().Cover(key, at))
	}
	return cover, nil
}

// hasTombstones reports whether there is any range tombstone.
func (s *readState) hasTombstones() bool {
	if len(s.version.WithTombstones) > 0 || s.mem.HasTombstones() {
		return true
	}
	for _, m := range s.imms {
		if m.HasTombstones() {
			return true
		}
	}
	return false
}
