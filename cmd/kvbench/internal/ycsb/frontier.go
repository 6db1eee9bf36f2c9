package ycsb

import "sync"

// A Frontier numbers records that are inserted by several workers, and knows up to
// which number all are there: only those may be read, as YCSB does it.
type Frontier struct {
	mu    sync.Mutex
	first int
	next  int
	there int // records below it are there
	limit int
	ahead map[int]struct{} // that are there beyond it
}

// NewFrontier is for records of which those below there exist, and those below limit may be
// inserted.
func NewFrontier(there, limit int) *Frontier {
	return &Frontier{first: there, next: there, there: there, limit: limit, ahead: map[int]struct{}{}}
}

// take returns the number of the next record to insert, false if there is none left.
func (f *Frontier) take() (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next >= f.limit {
		return 0, false
	}
	f.next++
	return f.next - 1, true
}

// inserted says that a record is there.
func (f *Frontier) inserted(n int) {
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

// Records returns how many there are.
func (f *Frontier) Records() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.there
}
