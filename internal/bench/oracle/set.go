package oracle

import "math/bits"

// A keySet is a set of hashes: a table with open addressing, three quarters full. It
// does not change, and any number of goroutines may ask it.
type keySet struct {
	slots []uint64 // 0: free
	zero  bool     // the hash 0 is in the set
}

// newKeySet returns the set of some hashes, of which some may be equal.
func newKeySet(hashes []uint64) *keySet {
	s := &keySet{slots: make([]uint64, len(hashes)+len(hashes)/3+1)}
	for _, h := range hashes {
		if h == 0 {
			s.zero = true
			continue
		}
		s.slots[s.find(h)] = h
	}
	return s
}

// find returns the slot that has h, or the free one where it belongs.
func (s *keySet) find(h uint64) uint64 {
	n := uint64(len(s.slots))
	at, _ := bits.Mul64(h, n)
	for s.slots[at] != 0 && s.slots[at] != h {
		if at++; at == n {
			at = 0
		}
	}
	return at
}

// MayContainHash reports whether a key with this hash was added.
func (s *keySet) MayContainHash(h uint64) bool {
	if h == 0 {
		return s.zero
	}
	return s.slots[s.find(h)] == h
}
