package keys

import (
	"errors"

	"github.com/cespare/xxhash/v2"
)

// A set holds distinct keys back to back in one allocation and numbers them in
// the order of their first sight. It costs the bytes of the keys plus, while it
// grows, at most 16 bytes of table per key, and keeps no pointer per key for the
// garbage collector to follow.
type set struct {
	bytes []byte
	ends  []uint64 // key i is bytes[ends[i]:ends[i+1]]; ends[0] is 0
	slots []uint32 // open addressing by hash: key number + 1, 0 is free
	seed  uint64
}

// maxSetKeys is what a slot can number.
const maxSetKeys = 1<<32 - 2

var errTooMany = errors.New("more than 4 billion distinct keys")

func newSet(seed uint64) *set {
	return &set{ends: make([]uint64, 1, 1024), slots: make([]uint32, 1024), seed: seed}
}

// len returns the number of distinct keys.
func (s *set) len() int { return len(s.ends) - 1 }

// at returns key i. It must not be changed.
func (s *set) at(i uint32) []byte {
	return s.bytes[s.ends[i]:s.ends[i+1]:s.ends[i+1]]
}

// add copies key into the set; added is false if it was there.
func (s *set) add(key []byte) (added bool, err error) {
	if 2*s.len() >= len(s.slots) {
		s.grow()
	}
	slot := s.find(key)
	if s.slots[slot] != 0 {
		return false, nil
	}
	if int64(s.len()) >= maxSetKeys {
		return false, errTooMany
	}
	s.bytes = append(s.bytes, key...)
	s.ends = append(s.ends, uint64(len(s.bytes)))
	s.slots[slot] = uint32(s.len())
	return true, nil
}

// find returns the slot of key, or the free slot where it belongs.
func (s *set) find(key []byte) uint64 {
	mask := uint64(len(s.slots) - 1)
	slot := Mix(xxhash.Sum64(key)^s.seed) & mask
	for s.slots[slot] != 0 && string(s.at(s.slots[slot]-1)) != string(key) {
		slot = (slot + 1) & mask
	}
	return slot
}

// grow doubles the table.
func (s *set) grow() {
	s.slots = make([]uint32, 2*len(s.slots))
	for i := range s.len() {
		s.slots[s.find(s.at(uint32(i)))] = uint32(i) + 1
	}
}

// seal gives the table back; add must not be called again.
func (s *set) seal() { s.slots = nil }
