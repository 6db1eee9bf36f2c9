// Package offheap keeps large memory outside the Go heap. The collector neither scans it nor
// counts it twice (GOGC), it goes back to the system at once, and what it takes is known.
//
// Whoever frees a Region must know that nobody uses its bytes any more; the race detector's
// build takes all but large regions from the heap, where it watches them, and overwrites what is
// freed, so that a use after that is found out.
package offheap

import (
	"runtime"
	"sync/atomic"
)

// minMapped is the size from which on a region has a mapping of its own, in bytes: of a smaller
// one too much of the last page would be lost, and a mapping costs two calls of the system.
const minMapped = 32 << 10

var used atomic.Int64

// Used returns the bytes of all regions of New that are outside the heap, or would be but for
// the race detector, and not freed. Only tests ask, whether what was taken is given back.
func Used() int64 { return used.Load() }

// A Region is memory of a fixed size. It is not safe for concurrent use; its bytes are what
// their owner makes them.
type Region struct {
	mem     []byte
	mapping []byte // what to give back; nil: mem is in the heap
	counts  bool   // in Used
}

// New returns a region of n zeros, whose bytes are aligned to 8. Small ones, and those that the
// system has no memory for, are in the heap.
func New(n int) *Region {
	r := &Region{counts: n >= minMapped}
	if n >= max(minMapped, largestWatched) {
		r.mem, r.mapping = reserve(int64(n))
	}
	if r.mapping == nil {
		r.mem = aligned(n)
		r.counts = r.counts && Poisons
	}
	if r.counts {
		used.Add(int64(n))
	}
	return r
}

// NewShared is New for a region that owner alone refers to, and that is freed when owner is no
// longer reachable, if nobody has freed it before. Who uses the bytes keeps the owner alive
// (runtime.KeepAlive).
func NewShared[T any](owner *T, n int) *Region {
	r := New(n)
	if r.mapping != nil || Poisons {
		runtime.AddCleanup(owner, (*Region).Free, r)
	}
	return r
}

// Reserve returns a region of up to size bytes of which the system gives pages as they are
// written to: size may be more than the machine has. It reports false if there is no address
// space. Large regions have large pages where the system has some.
func Reserve(size int64) (*Region, bool) {
	if size < largestWatched {
		return &Region{mem: aligned(int(size))}, true
	}
	mem, mapping := reserveHuge(size)
	if mem == nil {
		return nil, false
	}
	return &Region{mem: mem, mapping: mapping}, true
}

// Bytes returns the region's memory; nil once it is freed.
func (r *Region) Bytes() []byte { return r.mem }

// Free gives the memory back. A second call does nothing.
func (r *Region) Free() {
	if r.mem == nil {
		return
	}
	if r.mapping != nil {
		unreserve(r.mapping)
	} else {
		Poison(r.mem)
	}
	if r.counts {
		used.Add(-int64(len(r.mem)))
	}
	r.mem, r.mapping = nil, nil
}

// Discard gives the memory of the pages between two offsets back to the system. What they held
// is lost.
func (r *Region) Discard(from, to int64) {
	if r.mapping != nil {
		discard(r.mem[from:to])
	}
}
