package cache

import "sync/atomic"

// A Slot is the place of one block of one table. The zero value is empty.
type Slot struct{ word atomicWord }

// A word says all about a slot's block:
//
//	bits 0–9    how many readers have it pinned; all ones: it is being filled or moved
//	bit  10     it was read since the hand of the clock passed
//	bits 11–31  its length in bytes
//	bits 32–63  its offset in the cache's memory, in units
//
// A slot of length 0 is empty, as a block has at least one byte. Then the offset says when the block was last missed,
// as ring.missed counts; zero is never.
type word uint64

const (
	pinMask    word = 1<<10 - 1
	mark       word = 1 << 10
	lengthAt        = 11
	maxLength       = 1<<21 - 1
	offsetAt        = 32
	offsetBits      = 32

	unitShift = 6 // a unit is a cache line
)

func makeWord(at uint32, length int) word {
	return word(at)<<offsetAt | word(length)<<lengthAt
}

func (w word) offset() int    { return int(w >> offsetAt << unitShift) }
func (w word) length() int    { return int(w >> lengthAt & maxLength) }
func (w word) empty() bool    { return w.length() == 0 }
func (w word) at() uint32     { return uint32(w >> offsetAt) }
func (w word) busy() word     { return w | pinMask }
func (w word) unpinned() word { return w &^ pinMask }
func (w word) pinned() word   { return w | mark + 1 }

// pinnable reports whether there is a block with room for another pin. With a thousand pins there is none, and a reader
// reads the file instead.
func (w word) pinnable() bool { return !w.empty() && w&pinMask < pinMask-1 }

// unitsOf returns how many units n bytes take.
func unitsOf(n int) uint32 { return uint32((n + 1<<unitShift - 1) >> unitShift) }

type atomicWord struct{ n atomic.Uint64 }

func (a *atomicWord) Load() word   { return word(a.n.Load()) }
func (a *atomicWord) Store(w word) { a.n.Store(uint64(w)) }
func (a *atomicWord) CompareAndSwap(old, new word) bool {
	return a.n.CompareAndSwap(uint64(old), uint64(new))
}

// Unpin releases what Pin or Publish pinned: the bytes may no longer be used.
func (s *Slot) Unpin() { s.word.n.Add(^uint64(0)) }

// Publish makes the block that Reserve made room for visible. Its bytes are complete, and pinned once.
func (s *Slot) Publish() { s.word.Store(s.word.Load().unpinned() + 1) }

// Abandon drops the slot that Reserve made room for.
func (c *Cache) Abandon(key uint64, slot *Slot, owner *Owner) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring.forget(slot.word.Load(), owner)
	slot.word.Store(0)
}

// Filled reports whether a block is in the slot.
func (s *Slot) Filled() bool { return s.word.Load().pinnable() }
