package quotient

import (
	"iter"
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// A Set is a quotient filter that lives in an application: keys are added, removed and
// counted, sets are merged, and all of it is made larger or smaller without the keys. It is a
// multiset: a key that was added twice is there until it was removed twice.
//
// # What it keeps
//
// Each key is known by its value, a number below a range that is fixed by New. Different values are in the table, once
// each, in any order of arrival. Further copies of a value are counted in a separate map, which takes some 20 to 40
// bytes for each value that has any. So one key may come a million times and takes no room from others; a multiset of
// mostly repeated keys is better kept in package counting.
//
// # Removing what was never added
//
// Remove refuses a key if its value is not there. With a probability of FalsePositiveRate the value of a key that was
// never added is there, for another key. Remove would then take that other key away, and the set would deny it. Remove
// only what was added.
//
// # Concurrency
//
// Any number of goroutines may ask a set that none changes. Changes need a lock against each other and against
// questions; a sync.RWMutex serves. The zero Set is full, and only good for UnmarshalBinary and ReadFrom.
type Set struct {
	table  table
	floor  uint64 // remainder bits that Add leaves when it grows
	stored uint64 // different values
	copies uint64 // further copies of all values
	extra  map[uint64]uint64
}

// maxLen bounds the copies of all keys, so that sums of two sets do not wrap.
const maxLen = math.MaxInt / 2

// Add adds a key, or adds it once more. An error matches ErrFull, and leaves the set as it was.
func (s *Set) Add(key []byte) error { return s.AddHash(xxhash.Sum64(key)) }

// AddHash is Add for a key of which only the hash is known. Any 64-bit numbers do, counters too. It moves some 200
// slots at the highest load, a few at half of it; an Add that grows goes through the whole set.
func (s *Set) AddHash(h uint64) error {
	v := s.Value(h)
	switch {
	case s.ContainsHash(h):
		return s.addCopy(v)
	case s.stored >= s.capacity():
		if s.table.bits <= s.floor {
			return full()
		}
		if err := s.rebuild(2*s.table.quotients, s.table.bits-1, s.table.ascending()); err != nil {
			return err
		}
	}
	if !s.table.insert(v) {
		return crowded()
	}
	s.stored++
	return nil
}

func (s *Set) addCopy(v uint64) error {
	if s.stored+s.copies >= maxLen {
		return full()
	}
	if s.extra == nil {
		s.extra = map[uint64]uint64{}
	}
	s.extra[v]++
	s.copies++
	return nil
}

// AddNew adds a key unless Contains, and reports whether it did. A false positive counts as contained: such a key is
// not added but rests on the entry of another, and goes when that one is removed.
func (s *Set) AddNew(key []byte) (added bool, err error) {
	return s.AddNewHash(xxhash.Sum64(key))
}

// AddNewHash is AddNew for a key's hash.
func (s *Set) AddNewHash(h uint64) (added bool, err error) {
	if s.ContainsHash(h) {
		return false, nil
	}
	err = s.AddHash(h)
	return err == nil, err
}

// Contains reports whether a key may be in the set; false is certain.
func (s *Set) Contains(key []byte) bool { return s.ContainsHash(xxhash.Sum64(key)) }

// ContainsHash is Contains for a key's hash. It reads one or two blocks of 64 slots as a rule, and allocates nothing.
func (s *Set) ContainsHash(h uint64) bool { return s.table.quotients != 0 && s.table.has(s.Value(h)) }

// Count returns how often a key is in the set. It is never less than the truth, and
// more where other keys have the same value.
func (s *Set) Count(key []byte) int { return s.CountHash(xxhash.Sum64(key)) }

// CountHash is Count for a key's hash.
func (s *Set) CountHash(h uint64) int {
	if !s.ContainsHash(h) {
		return 0
	}
	return s.times(s.Value(h))
}

func (s *Set) times(v uint64) int { return 1 + int(s.extra[v]) }

// Remove takes one copy of a key away and says whether there was one. Read about
// removing what was never added in the description of Set.
func (s *Set) Remove(key []byte) bool { return s.RemoveHash(xxhash.Sum64(key)) }

// RemoveHash is Remove for a key's hash. It takes as long as an AddHash that does not grow.
func (s *Set) RemoveHash(h uint64) bool {
	if !s.ContainsHash(h) {
		return false
	}
	v := s.Value(h)
	switch s.extra[v] {
	case 0:
		s.table.remove(v)
		s.stored--
		return true
	case 1:
		delete(s.extra, v)
	default:
		s.extra[v]--
	}
	s.copies--
	return true
}

// Len returns the number of keys in the set, copies counted.
func (s *Set) Len() int { return int(s.stored + s.copies) }

// Cap returns the number of different keys that the set holds as large as it is: what it was
// made for, or one or two more.
func (s *Set) Cap() int { return int(s.capacity()) }

func (s *Set) capacity() uint64 { return s.table.quotients * load / 100 }

// LoadFactor returns the different values as a share of the quotients; a full set has 0.95.
func (s *Set) LoadFactor() float64 { return float64(s.stored) / float64(max(1, s.table.quotients)) }

// FalsePositiveRate returns the probability that Contains is true for a key that was
// never added: the share of the range that is taken. It is exact and reads two numbers.
func (s *Set) FalsePositiveRate() float64 {
	return float64(s.stored) / float64(max(1, s.table.values()))
}

// Size returns the bytes that the table takes in memory. Counted copies come on top.
func (s *Set) Size() int { return cap(s.table.cells) }

// Geometry returns the number of quotients and the bits of a remainder; values are below
// quotients << bits, whatever the size of the set.
func (s *Set) Geometry() (quotients uint64, remainderBits int) {
	return s.table.quotients, int(s.table.bits)
}

// Value returns the value under which the set knows a hash.
func (s *Set) Value(h uint64) uint64 { return s.table.value(hash64.Seeded(h, 0)) }

// All yields the values in the set in ascending order, each once with the number of its
// copies. The set must not be changed meanwhile.
func (s *Set) All() iter.Seq2[uint64, int] {
	return func(yield func(uint64, int) bool) {
		c := cursor{table: &s.table}
		for v, ok := c.next(); ok && yield(v, s.times(v)); v, ok = c.next() {
		}
	}
}

// Reset removes every key and keeps memory and size.
func (s *Set) Reset() {
	s.table.blocks = (s.table.quotients + blockSlots - 1) / blockSlots
	s.table.cells = s.table.cells[:s.table.blocks*blockLen(s.table.bits)]
	clear(s.table.cells)
	clear(s.extra)
	s.stored, s.copies = 0, 0
}
