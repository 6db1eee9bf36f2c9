package ycsb

import "sync"

// A frontier numbers records that are inserted by several workers, and knows up to
// which number all are there: only those may be read, as YCSB does it.
type frontier struct {
	mu    sync.Mutex
	next  int
	there int // records below it are there
	limit int
	ahead map[int]struct{} // that are there beyond it
}

func newFrontier(there, limit int) *frontier {
	return &frontier{next: there, there: there, limit: limit, ahead: map[int]struct{}{}}
}

// take returns the number of the next record to insert, false if there is none left.
func (f *frontier) take() (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next >= f.limit {
		return 0, false
	}
	f.next++
	return f.next - 1, true
}

// inserted says that a record is there.
func (f *frontier) inserted(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ahead[n] = struct{}{}
	for {
		if _, ok := f.ahead[f.there]; !ok {
			return
		}
		delete(f.ahead, f.there)
		f.there++
	}
}

// records returns how many there are.
func (f *frontier) records() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.there
}
