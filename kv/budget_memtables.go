package kv

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/memtable"
)

// How the stores of a budget get their memtables. No store ever waits for another. Each has a floor for each of its
// memtables, and the rest is divided among those that write. A store that has more than that, because it wrote while
// others did not, is asked to flush.

// A store is idle if it has written nothing while stores were given memtables of 1/idlePart of all
// memory for memtables. There is no clock in this: where no store needs memory, none is asked for
// any.
const idlePart = 2

// floorPart: the floors of all stores together take 1/floorPart of the memory for memtables, or
// 64 KiB for each memtable if that is more.
const floorPart = 4

// floor returns how much a store may always have for each of its memtables. The caller holds b.mu, and there is
// a store.
func (b *MemoryBudget) floor() int64 {
	return max(b.memtablesPart()/floorPart/b.weights(func(*budgetShare) bool { return true }), minMemtable)
}

// weights returns how many memtables some of the stores may have.
func (b *MemoryBudget) weights(which func(*budgetShare) bool) (n int64) {
	for _, s := range b.shares {
		if which(s) {
			n += s.weight
		}
	}
	return max(n, 1)
}

// observe notes which stores have written since the last time.
func (b *MemoryBudget) observe() {
	for _, s := range b.shares {
		if n := s.d.commits.Writes.Load(); n != s.writes {
			s.writes, s.wrote, s.wroteAt = n, true, b.given
		}
	}
}

func (s *budgetShare) idle() bool {
	return !s.wrote || s.b.given-s.wroteAt > s.b.memtablesPart()/idlePart
}

// wants returns what a store should have for each of its memtables: the floor, and if it writes
// its part of what is left. The caller holds b.mu.
func (b *MemoryBudget) wants(s *budgetShare) int64 {
	size := b.floor()
	if !s.idle() {
		all := b.weights(func(*budgetShare) bool { return true })
		left := b.memtablesPart() - size*all
		size += max(left, 0) / b.weights(func(s *budgetShare) bool { return !s.idle() })
	}
	return wholeSize(min(size, s.most))
}

// wholeSize rounds a size down, by an eighth at the most: a store whose share has hardly changed then
// uses the memory of its last memtable again.
func wholeSize(size int64) int64 {
	step := int64(1) << max(bits.Len64(uint64(size))-4, 0)
	return max(size&^(step-1), minMemtable)
}

// has returns what counts as the store's.
func (s *budgetShare) has() int64 { return s.taken.Load() + s.replayed.Load() + s.promised }

// over returns how much of n bytes is beyond a store's floor.
func (s *budgetShare) over(n, floor int64) int64 { return max(n-floor*s.weight, 0) }

// free returns what is neither taken nor any store's floor; it may be negative. The caller holds b.mu.
func (b *MemoryBudget) free(floor int64) int64 {
	n := b.memtablesPart() - b.leftBehind()
	for _, s := range b.shares {
		n -= floor*s.weight + s.over(s.has(), floor)
	}
	return n
}

// leftBehind returns what iterators of closed stores keep of memtables. The caller holds b.mu.
func (b *MemoryBudget) leftBehind() (n int64) {
	b.gone = slices.DeleteFunc(b.gone, func(taken *atomic.Int64) bool { return taken.Load() == 0 })
	for _, taken := range b.gone {
		n += taken.Load()
	}
	return n
}

// promise returns the size of the store's next memtable, in bytes, and counts it until kept is called.
// It asks others for what is missing.
func (s *budgetShare) promise() (size int64, kept func()) {
	b := s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	b.observe()
	want, floor := b.wants(s), b.floor()
	has, mine := s.has(), s.has()-s.d.memtables.Kept() // the next one takes the place of what is kept
	free := b.free(floor) + s.over(has, floor) - s.over(mine, floor)
	may := free + max(floor, floor*s.weight-mine)
	if may < want {
		b.demand(s, want-may)
	}
	size = max(wholeSize(min(want, max(may, floor))), minMemtable)
	size = min(size, s.most)
	s.promised += size
	b.given += size
	return size, func() {
		b.mu.Lock()
		s.promised -= size
		b.mu.Unlock()
	}
}

// demand asks stores other than s for the bytes that are missing. The caller holds b.mu.
func (b *MemoryBudget) demand(s *budgetShare, short int64) {
	type victim struct {
		share *budgetShare
		idle  bool
		spare int64 // what it can give up
	}
	var victims []victim
	floor := b.floor()
	for _, other := range b.shares {
		if other == s || other.asked || !other.writing || other.d.resumer.failed.Load() {
			continue
		}
		idle, spare := other.idle(), other.over(other.has(), floor)
		if wants := b.wants(other) * other.weight; !idle {
			spare = other.has() - wants - wants/8
		}
		if spare > 0 {
			victims = append(victims, victim{other, idle, spare})
		}
	}
	slices.SortFunc(victims, func(a, b victim) int {
		switch {
		case a.idle && b.idle:
			return cmp.Or(cmp.Compare(a.share.wroteAt, b.share.wroteAt), cmp.Compare(b.spare, a.spare))
		case a.idle:
			return -1
		case b.idle:
			return 1
		}
		return cmp.Compare(b.spare, a.spare)
	})
	for _, v := range victims {
		if short <= 0 {
			return
		}
		short -= v.spare
		v.share.asked = true
		go v.share.giveUp()
	}
}

// size returns what the store's memtables should have now.
func (s *budgetShare) size() int64 {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.observe()
	return s.b.wants(s)
}

// tooLarge reports whether a memtable has clearly more than the store should have.
func (s *budgetShare) tooLarge(m *memTable) bool {
	if s == nil {
		return false
	}
	size := s.size()
	return m.Capacity()+m.IndexSize() > size+size/8
}

// giveUp makes the store's memtable smaller, if it has more than it should. It flushes the contents. A store that
// cannot flush is left alone: it is asked again if there is need.
func (s *budgetShare) giveUp() {
	d := s.d
	defer func() {
		s.b.mu.Lock()
		s.asked = false
		s.b.mu.Unlock()
	}()
	d.memtables.SetKeep(0)
	_ = d.commits.Exclusive(context.Background(), func() error { // a store that fails tells its writers
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.failure != nil || d.closing || d.mem == nil || len(d.imms)+1 >= d.opts.MaxMemtables ||
			!s.tooLarge(d.mem) {
			return nil
		}
		return d.rotate()
	})
}

// evenArena is the arena of a memtable of an even share.
func (s *budgetShare) evenArena() int64 {
	b := s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	size := max(b.memtablesPart()/b.weights(func(*budgetShare) bool { return true }), minMemtable)
	return int64(memtable.CapacityWithin(int(min(size, s.most))))
}
