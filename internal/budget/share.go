package budget

import (
	"slices"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/cache"
	"github.com/siftkv/siftkv/internal/falsepositives"
	"github.com/siftkv/siftkv/internal/tablecache"
)

// A Store is what a budget knows of a store.
type Store struct {
	Memtables    int64 // that the store may have
	MemtableSize int64 // bytes of one at the most
	Objects      bool  // it is in an object store

	Writes *atomic.Uint64 // grows with each write
	Failed *atomic.Bool   // it cannot flush
	Kept   func() int64   // bytes that are kept for its next memtable

	// GiveUp flushes a memtable that TooLarge reports. A store that cannot flush is left alone, and asked
	// again if there is need.
	GiveUp func()
	// Wake uses the thread that Share.Background was granted.
	Wake func()
}

// A Share is what one store has of a budget, from Join to Leave. A nil one is that of a store without a budget.
type Share struct {
	Store
	b *Memory

	Readers        *tablecache.Memory // of all stores
	FalsePositives *falsepositives.Memory
	blocks         cache.Owner
	Taken          *atomic.Int64 // bytes of memtables
	background     *Request
	replayed       atomic.Int64 // bytes of memtables that are in the heap: what recovery and followers read from logs

	// Guarded by b.mu.
	promised int64 // bytes of memtables that are about to be taken
	writes   uint64
	wrote    bool  // since the store was opened
	wroteAt  int64 // when the number of writes was last seen to have grown, by b.given
	writing  bool  // it is open, and may be asked to give up what it has too much
	asked    bool  // it was asked
}

// Leave releases the share. Nothing uses the store any more, except iterators that were left open: what they have
// stays counted until they are closed.
func (s *Share) Leave() {
	if s == nil {
		return
	}
	b := s.b
	s.background.Cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.shares, s)
	if i < 0 {
		return
	}
	b.shares = slices.Delete(b.shares, i, i+1)
	if s.Taken.Load() > 0 {
		b.gone = append(b.gone, s.Taken)
	}
	if len(b.shares) > 0 {
		b.readers.SetLimit(b.ReadersLimit(b.hasObjects()))
		b.readers.Cache.Sweep()
		return
	}
	b.readers.Cache.Release() // tables of open iterators keep it
	b.readers, b.falsePositives = nil, nil
}

// Begin says that the store writes, and may be asked to give up memtables.
func (s *Share) Begin() {
	if s == nil {
		return
	}
	s.b.mu.Lock()
	s.writing = true
	s.b.mu.Unlock()
}

// Bytes returns what the memtables and cached blocks of the store take.
func (s *Share) Bytes() int64 {
	blocks, _ := s.blocks.Used()
	return s.Taken.Load() + s.replayed.Load() + blocks
}

// AddReplayed counts memtables in the heap, n bytes more than before.
func (s *Share) AddReplayed(n int64) {
	if s != nil {
		s.replayed.Add(n)
	}
}

// SetReplayed counts n bytes of memtables in the heap and no others.
func (s *Share) SetReplayed(n int64) {
	if s != nil {
		s.replayed.Store(n)
	}
}

// Owner returns whom the cache counts the store's blocks for; nil without a budget.
func (s *Share) Owner() *cache.Owner {
	if s == nil {
		return nil
	}
	return &s.blocks
}

// Background returns the request of the store's automatic compactions; nil without a budget.
func (s *Share) Background() *Request {
	if s == nil {
		return nil
	}
	return s.background
}
