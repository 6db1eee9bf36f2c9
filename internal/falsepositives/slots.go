package falsepositives

import (
	"math/bits"
	"sync/atomic"
)

// A fact is that a table has no version of a key. It is never changed.
type fact struct {
	about uint64 // see Table.about
	key   [MaxKey]byte
}

// about returns a table and the length of a key, MaxKey at the most, in one number.
func (t *Table) about(key []byte) uint64 { return t.number<<8 | uint64(len(key)) }

// is reports whether f says that t has no version of key, which has MaxKey bytes at the most.
func (f *fact) is(t *Table, key []byte) bool {
	return f.about == t.about(key) && string(f.key[:len(key)]) == string(key)
}

// A set is all that a lookup needs of eight slots if it finds no fact about its key. Fact, tag and uses are written one
// after the other, and by several goroutines at once. If they do not agree, a fact is just not found: a fact names its
// key and table itself.
type set struct {
	tags [words]atomic.Uint64 // lanes in each, 0: an empty slot

	// uses has in the low bits, two for each slot, how often it was of use lately: maxUses at the most.
	// Above them is the slot after the one that was filled last.
	uses atomic.Uint64
}

type slots struct {
	sets  []set
	facts []atomic.Pointer[fact] // ways for each set
}

func newSlots(sets uint64) *slots {
	return &slots{make([]set, sets), make([]atomic.Pointer[fact], sets*ways)}
}

const (
	laneBits = 64 / lanes
	handAt   = 2 * ways // where in uses the slot stands that is next

	// Every lane of a word: its lowest bit, and its highest.
	lows  = 0x0001_0001_0001_0001
	highs = lows << (laneBits - 1)
)

// lanesWith returns the highest bit of each lane of word that has a tag. Above one that has it there may be
// others that have not.
func lanesWith(word, tag uint64) uint64 {
	x := word ^ tag*lows
	return (x - lows) &^ x & highs
}

// find reports whether it is remembered that t has no version of key.
func (s *slots) find(t *Table, key []byte, hash uint64) bool {
	n, tag := t.place(hash, uint64(len(s.sets)))
	for w := range s.sets[n].tags {
		match := lanesWith(s.sets[n].tags[w].Load(), tag)
		for ; match != 0; match &= match - 1 {
			slot := w*lanes + bits.TrailingZeros64(match)/laneBits
			if f := s.facts[n*ways+uint64(slot)].Load(); f != nil && f.is(t, key) {
				s.sets[n].use(slot)
				return true
			}
		}
	}
	return false
}

func (s *set) use(slot int) {
	// A favourite has all the uses there are, or else its readers would share a line that they write to.
	if u := s.uses.Load(); u>>(2*slot)&maxUses < maxUses {
		s.uses.CompareAndSwap(u, u+1<<(2*slot))
	}
}

func (s *set) empty() (slot int, ok bool) {
	for w := range s.tags {
		if match := lanesWith(s.tags[w].Load(), 0); match != 0 {
			return w*lanes + bits.TrailingZeros64(match)/laneBits, true
		}
	}
	return 0, false
}

// victim returns the slot to replace: that with the fewest uses, of several the one that was filled first. The others
// lose as many uses as it had, or one if it had none and forget is set. So facts that repeat stay, and those that no
// longer do, perhaps of a file that is gone, go in the end.
func (s *set) victim(forget bool) int {
	u := s.uses.Load()
	hand := int(u >> handAt)
	victim, least := 0, uint64(maxUses+1)
	for i := range ways {
		slot := (hand + i) % ways
		if n := u >> (2 * slot) & maxUses; n < least {
			victim, least = slot, n
		}
	}
	if least == 0 && forget {
		least = 1
	}
	after := uint64((victim+1)%ways) << handAt
	for slot := range ways {
		if n := u >> (2 * slot) & maxUses; slot != victim && n > least {
			after |= (n - least) << (2 * slot)
		}
	}
	s.uses.Store(after)
	return victim
}

// fill puts a fact into a slot of set n. It reports whether there was none.
func (s *slots) fill(n uint64, slot int, f *fact, tag uint64) (first bool) {
	first = s.facts[n*ways+uint64(slot)].Swap(f) == nil
	word, shift := &s.sets[n].tags[slot/lanes], slot%lanes*laneBits
	for {
		old := word.Load()
		if word.CompareAndSwap(old, old&^(0xffff<<shift)|tag<<shift) {
			return first
		}
	}
}
