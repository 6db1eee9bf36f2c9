package engine

import (
	"errors"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"sync"
)

// Key sets of the stores of the process by directory. What belongs to a directory that is gone
// is dropped when the next store is made.
var (
	oraclesMu sync.Mutex
	oracles   = map[string]*keySets{}
)

// keySets are the key sets of the files of one store. They may be used by several
// goroutines.
type keySets struct {
	mu   sync.RWMutex
	sets []*keySet // by number
}

// keySetsOf returns the key sets of the store in a directory, which need not be there yet.
func keySetsOf(dir string) *keySets {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	oraclesMu.Lock()
	defer oraclesMu.Unlock()
	for d := range oracles {
		if _, err := os.Stat(d); d != dir && errors.Is(err, fs.ErrNotExist) {
			delete(oracles, d)
		}
	}
	s, ok := oracles[dir]
	if !ok {
		s = &keySets{}
		oracles[dir] = s
	}
	return s
}

// add keeps a set and returns its number.
func (s *keySets) add(set *keySet) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets = append(s.sets, set)
	return uint64(len(s.sets) - 1)
}

// at returns the set of a number, nil if there is none.
func (s *keySets) at(number uint64) *keySet {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if number >= uint64(len(s.sets)) {
		return nil
	}
	return s.sets[number]
}

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
