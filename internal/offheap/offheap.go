// Package offheap keeps large memory outside the Go heap. The collector neither scans it nor
// counts it twice (GOGC), it goes back to the system at once, and what it takes is known.
//
// A Region's bytes must not be used after Free. The race detector's build finds such uses: it takes
// all except large regions from the heap, where it watches them, and overwrites what is freed.
package offheap

import (
	"runtime"
	"sync/atomic"
)

// A region of at least minMapped bytes has a mapping of its own. A smaller one would lose too much
// of the last page, and a mapping costs two calls of the system.
const minMapped = 32 << 10

var used atomic.Int64

// Used returns the bytes of all regions of New that are not freed and outside the heap, or would be
// without the race detector. It is for tests of leaks.
func Used() int64 { return used.Load() }

// A Region is memory of a fixed size. It is not safe for concurrent use; the owner decides about the use of its bytes.
type Region struct {
	mem     []byte
	mapping []byte // what to return to the system; nil: mem is in the heap
	counts  bool   // in Used
}

// New returns a region of n zeros, aligned to 8 bytes. Small ones, and those that the system has no
// memory for, are in the heap.
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

// NewShared is New for a region that owner alone refers to. It is freed when owner is no longer reachable, unless it
// was freed before. Code that uses the bytes must keep the owner alive (runtime.KeepAlive).
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

// Discard gives the memory of the pages between two offsets back to the system. What they held is lost.
func (r *Region) Discard(from, to int64) {
	if r.mapping != nil {
		discard(r.mem[from:to])
	}
}
