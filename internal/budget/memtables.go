package budget

import (
	"math/bits"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/memtable"
)

// How the stores of a budget get their memtables. No store ever waits for another. Each has a floor for each of its
// memtables, and the rest is divided among those that write. A store that has more than that, because it wrote while
// others did not, is asked to flush.

// A store is idle if it has written nothing while stores were given memtables of 1/idlePart of all memory for
// memtables. There is no clock in this: where no store needs memory, none is asked for any.
const idlePart = 2

// FloorPart says what floors take: all stores together 1/FloorPart of the memory for memtables, or
// 64 KiB for each memtable if that is more.
const FloorPart = 4

// floor returns how much a store may always have for each of its memtables. The caller holds b.mu, and there is
// a store.
func (b *Memory) floor() int64 {
	return max(b.Memtables()/FloorPart/b.weights(func(*Share) bool { return true }), MinMemtable)
}

// weights returns how many memtables some of the stores may have.
func (b *Memory) weights(which func(*Share) bool) (n int64) {
	for _, s := range b.shares {
		if which(s) {
			n += s.Memtables
		}
	}
	return max(n, 1)
}

// observe notes which stores have written since the last time.
func (b *Memory) observe() {
	for _, s := range b.shares {
		if n := s.Writes.Load(); n != s.writes {
			s.writes, s.wrote, s.wroteAt = n, true, b.given
		}
	}
}

func (s *Share) idle() bool {
	return !s.wrote || s.b.given-s.wroteAt > s.b.Memtables()/idlePart
}

// wants returns what a store should have for each of its memtables: the floor, and if it writes
// its part of what is left. The caller holds b.mu.
func (b *Memory) wants(s *Share) int64 {
	size := b.floor()
	if !s.idle() {
		all := b.weights(func(*Share) bool { return true })
		left := b.Memtables() - size*all
		size += max(left, 0) / b.weights(func(s *Share) bool { return !s.idle() })
	}
	return wholeSize(min(size, s.MemtableSize))
}

// wholeSize rounds a size down, by an eighth at the most: a store whose share has hardly changed then
// uses the memory of its last memtable again.
func wholeSize(size int64) int64 {
	step := int64(1) << max(bits.Len64(uint64(size))-4, 0)
	return max(size&^(step-1), MinMemtable)
}

// has returns what counts as the store's.
func (s *Share) has() int64 { return s.Taken.Load() + s.replayed.Load() + s.promised }

// over returns how much of n bytes is beyond a store's floor.
func (s *Share) over(n, floor int64) int64 { return max(n-floor*s.Memtables, 0) }

// free returns what is neither taken nor any store's floor; it may be negative. The caller holds b.mu.
func (b *Memory) free(floor int64) int64 {
	n := b.Memtables() - b.leftBehind()
	for _, s := range b.shares {
		n -= floor*s.Memtables + s.over(s.has(), floor)
	}
	return n
}

// leftBehind returns what iterators of closed stores keep of memtables. The caller holds b.mu.
func (b *Memory) leftBehind() (n int64) {
	b.gone = slices.DeleteFunc(b.gone, func(taken *atomic.Int64) bool { return taken.Load() == 0 })
	for _, taken := range b.gone {
		n += taken.Load()
	}
	return n
}

// Promise returns the size of the store's next memtable, in bytes, and counts it until kept is called.
// It asks others for what is missing.
func (s *Share) Promise() (size int64, kept func()) {
	b := s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	b.observe()
	want, floor := b.wants(s), b.floor()
	has, mine := s.has(), s.has()-s.Kept() // the next one takes the place of what is kept
	free := b.free(floor) + s.over(has, floor) - s.over(mine, floor)
	may := free + max(floor, floor*s.Memtables-mine)
	if may < want {
		b.demand(s, want-may)
	}
	size = max(wholeSize(min(want, max(may, floor))), MinMemtable)
	size = min(size, s.MemtableSize)
	s.promised += size
	b.given += size
	return size, func() {
		b.mu.Lock()
		s.promised -= size
		b.mu.Unlock()
	}
}

// demand asks stores other than s for the bytes that are missing. The caller holds b.mu.
func (b *Memory) demand(s *Share, short int64) {
	type candidate struct {
		share *Share
		idle  bool
		spare int64 // what it can give up
	}
	var candidates []candidate
	floor := b.floor()
	for _, other := range b.shares {
		if other == s || other.asked || !other.writing || other.Failed.Load() {
			continue
		}
		idle, spare := other.idle(), other.over(other.has(), floor)
		if wants := b.wants(other) * other.Memtables; !idle {
			spare = other.has() - wants - wants/8
		}
		if spare > 0 {
			candidates = append(candidates, candidate{other, idle, spare})
		}
	}
	sort.Slice(candidates, func(i, j int) bool {
		a, b := &candidates[i], &candidates[j]
		if a.idle && b.idle && a.share.wroteAt != b.share.wroteAt {
			return a.share.wroteAt < b.share.wroteAt
		}
		return a.idle && !b.idle || a.idle == b.idle && a.spare > b.spare
	})
	for _, c := range candidates {
		if short <= 0 {
			return
		}
		short -= c.spare
		c.share.asked = true
		go c.share.giveUp()
	}
}

// size returns what the store's memtables should have now.
func (s *Share) size() int64 {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.observe()
	return s.b.wants(s)
}

// TooLarge reports whether a memtable of the given bytes has clearly more than the store should have.
func (s *Share) TooLarge(bytes int64) bool {
	if s == nil {
		return false
	}
	size := s.size()
	return bytes > size+size/8
}

// giveUp asks the store to flush a memtable that is too large.
func (s *Share) giveUp() {
	defer func() { // also if it panics
		s.b.mu.Lock()
		s.asked = false
		s.b.mu.Unlock()
	}()
	s.GiveUp()
}

// EvenArena returns the arena of a memtable of an even share, in bytes.
func (s *Share) EvenArena() int64 {
	b := s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	size := max(b.Memtables()/b.weights(func(*Share) bool { return true }), MinMemtable)
	return int64(memtable.CapacityWithin(int(min(size, s.MemtableSize))))
}
