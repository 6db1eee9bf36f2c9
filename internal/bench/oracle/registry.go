package oracle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Stores of the process by their directory. What belongs to a directory that is gone
// is dropped when the next store is made.
var (
	storesMu sync.Mutex
	stores   = map[string]*keySets{}
)

// keySets are the key sets of the files of one store. They may be used by several
// goroutines.
type keySets struct {
	mu   sync.RWMutex
	sets []*keySet // by number
}

// of returns the key sets of the store in a directory, which need not be there yet.
func of(dir string) *keySets {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	storesMu.Lock()
	defer storesMu.Unlock()
	for d := range stores {
		if _, err := os.Stat(d); d != dir && errors.Is(err, fs.ErrNotExist) {
			delete(stores, d)
		}
	}
	s, ok := stores[dir]
	if !ok {
		s = &keySets{}
		stores[dir] = s
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
