package hash64

import (
	"iter"
	"runtime"
	"unsafe"

	"github.com/siftkv/siftkv/internal/offheap"
)

// chunkLen hashes are 128 KiB: some tens of chunks per large file, and a slack of
// at most one chunk per open builder. The first chunk is small, so that a small file neither maps nor clears so much.
const (
	firstLen = 1 << 10
	chunkLen = 16 << 10
)

// A chunk has memory outside the Go heap: that of a large file's keys would otherwise be
// most of the heap, and the collector lets that double.
type chunk struct {
	hashes []uint64
	memory *offheap.Region
}

func newChunk(n int) *chunk {
	c := &chunk{}
	c.memory = offheap.NewShared(c, 8*n)
	c.hashes = unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(c.memory.Bytes()))), n)
	return c
}

// A List is the hashes of a file in the order of their arrival. Every family needs the number of
// keys before it can place the first one. Until then a key costs eight bytes, held in chunks:
// nothing is copied when a file grows, and Reset gives the memory back to the system.
//
// The zero value is an empty list. It is for one goroutine at a time.
type List struct {
	chunks []*chunk
	tail   []uint64 // the last of chunks
	at     int      // hashes of tail
	n      int
	last   uint64
}

// Add appends h unless it equals the hash before it. Versions of one user key stand
// side by side in a file, so this drops nearly all duplicates for free.
func (s *List) Add(h uint64) {
	if h == s.last && s.n != 0 {
		return
	}
	if s.at == len(s.tail) {
		s.grow()
	}
	s.tail[s.at] = h
	s.at++
	s.last = h
	s.n++
}

func (s *List) grow() {
	n := firstLen
	if s.n > 0 {
		n = chunkLen
	}
	c := newChunk(n)
	s.chunks, s.tail, s.at = append(s.chunks, c), c.hashes, 0
}

// Len returns the number of hashes kept.
func (s *List) Len() int { return s.n }

// Chunks yields the hashes in order, some thousands at a time, so that the caller's
// inner loop is over a slice. The slices are read-only and valid until Reset.
func (s *List) Chunks() iter.Seq[[]uint64] {
	return func(yield func([]uint64) bool) {
		left := s.n
		for _, c := range s.chunks {
			n := min(left, len(c.hashes))
			if !yield(c.hashes[:n]) {
				return
			}
			left -= n
		}
		runtime.KeepAlive(s)
	}
}

// Reset empties the list and gives its memory back.
func (s *List) Reset() {
	for i, c := range s.chunks {
		c.memory.Free()
		s.chunks[i] = nil
	}
	*s = List{chunks: s.chunks[:0]}
}
