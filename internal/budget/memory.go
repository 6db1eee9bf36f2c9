// Package budget divides one bound of memory, and the threads that compact, among the stores of a process.
// Each store has a Share: of memtables, of one cache with filters and indexes, and of threads.
package budget

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/falsepositives"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/kv/metrics"
)

// A Memory is a bound of memory that several stores share; New makes one. It is safe for concurrent use. Its mutex is
// taken after a store's, and calls a store back only in a goroutine of its own.
type Memory struct {
	limit   int64
	threads int // that compact at the same time

	mu             sync.Mutex // taken after a store's mutex; no store's is taken under it
	shares         []*Share
	readers        *tablecache.Memory     // of the stores that are open; nil: there is none
	falsePositives *falsepositives.Memory // of the same
	gone           []*atomic.Int64        // memtables of stores that were closed before their last iterator
	given          int64                  // bytes of memtables that stores were given so far: a clock
	busy           int                    // threads that compact
	queue          []*Request             // for a thread

	parts sstable.Budget // of what iterators prefetch
}

// New returns a budget of the given bytes.
func New(bytes int64) *Memory {
	threads := min(int64(runtime.GOMAXPROCS(0)/2), bytes/ThreadMemory)
	b := &Memory{limit: bytes, threads: int(max(threads, 2))}
	b.parts.Limit = min(bytes/8, MaxParts)
	return b
}

// Limit returns the bytes of the budget; 0 for nil.
func (b *Memory) Limit() int64 {
	if b == nil {
		return 0
	}
	return b.limit
}

// Threads returns how many compactions may run at the same time.
func (b *Memory) Threads() int { return b.threads }

// Parts returns what iterators on object stores may prefetch.
func (b *Memory) Parts() *sstable.Budget { return &b.parts }

// Memtables returns the bytes for the memtables of all stores.
func (b *Memory) Memtables() int64 { return b.limit / 8 * 3 }

// ReadersLimit returns the bytes for blocks, filters and indexes of all stores.
func (b *Memory) ReadersLimit(objects bool) int64 {
	rest := b.limit - b.Memtables() - Buffers(b.limit) - falsepositives.Most(FalsePositives(b.limit))
	if objects {
		rest -= b.parts.Limit
	}
	return rest
}

// minShare returns what a store with the given number of memtables needs of a budget, in bytes.
func minShare(memtables int64) int64 { return (memtables*MinMemtable*8 + 2) / 3 }

// ErrTooSmall is matched by the error of Join when the budget has too little for one more store.
var ErrTooSmall = errors.New("siftkv: the memory budget is too small for one more store")

// Join gives a store its share. It has that until Share.Leave.
func (b *Memory) Join(store Store) (*Share, error) {
	s := &Share{b: b, Store: store, Taken: new(atomic.Int64)}
	s.background = &Request{share: s}
	b.mu.Lock()
	defer b.mu.Unlock()
	others := int64(0)
	for _, other := range b.shares {
		others += minShare(other.Memtables)
	}
	if need := minShare(s.Memtables); others+need > b.limit {
		return nil, fmt.Errorf("%w: it has %d bytes; %d stores are open and need %d, and this one needs %d: "+
			"want a budget of %d or more, or fewer stores at a time",
			ErrTooSmall, b.limit, len(b.shares), others, need, others+need)
	}
	if b.readers == nil {
		b.readers = tablecache.NewMemory(b.ReadersLimit(false), b.ReadersLimit(false))
		b.falsePositives = falsepositives.New(FalsePositives(b.limit))
	}
	b.shares = append(b.shares, s)
	b.readers.SetLimit(b.ReadersLimit(b.hasObjects()))
	s.Readers, s.FalsePositives = b.readers, b.falsePositives
	return s, nil
}

// hasObjects reports whether a store in an object store is open. The caller holds b.mu.
func (b *Memory) hasObjects() bool {
	for _, s := range b.shares {
		if s.Objects {
			return true
		}
	}
	return false
}

// Usage returns what the budget is used for now; nothing for nil. Buffers of flushes and compactions are not in it:
// they come and go, and their number is bounded.
func (b *Memory) Usage() metrics.Budget {
	if b == nil {
		return metrics.Budget{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	u := metrics.Budget{Limit: b.limit, Stores: len(b.shares), Memtables: b.leftBehind(), ReadAhead: b.parts.Used(),
		Compactions: b.busy, MaxCompaction: b.threads, Waiting: len(b.queue)}
	for _, s := range b.shares {
		u.Memtables += s.Taken.Load() + s.replayed.Load()
		if s.asked {
			u.Asked++
		}
	}
	if b.readers != nil {
		u.Blocks, _ = b.readers.Cache.Used()
		u.Filters, u.Indexes = b.readers.Pinned()
		u.Remembered = b.falsePositives.Bytes()
	}
	return u
}
