package blockindex

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Len returns the number of entries.
func (x *Index) Len() int { return x.n }

// First returns the number of the first block.
func (x *Index) First() int { return x.first }

// Size returns the bytes of memory that the index takes: those of its encoding, and of its guide if it has one.
func (x *Index) Size() int {
	return headerSize + len(x.common) + entrySize*x.n + len(x.rests) + 4*len(x.guide.starts)
}

// Block returns where entry i's block begins in the file and how long it is.
func (x *Index) Block(i int) (offset uint64, length int) {
	offset = x.start
	if i > 0 {
		offset = x.end(i - 1)
	}
	return offset, int(x.end(i) - offset)
}

// End returns the file offset after the last block.
func (x *Index) End() uint64 {
	if x.n == 0 {
		return x.start
	}
	return x.end(x.n - 1)
}

// AppendSeparator appends entry i's separator to dst.
func (x *Index) AppendSeparator(dst []byte, i int) []byte {
	return append(append(dst, x.common...), x.rest(i)...)
}

// Find returns the first entry with a separator of at least key, or Len if there is none. It allocates nothing and
// takes O(log n): about two cache misses in a large index, since the search runs over the array of prefixes alone. With
// a guide and prefixes that are spread evenly it takes O(1).
func (x *Index) Find(key []byte) int {
	c := min(len(key), len(x.common))
	switch bytes.Compare(key[:c], x.common[:c]) {
	case -1:
		return 0
	case 1:
		return x.n
	}
	if c < len(x.common) {
		return 0 // key is a proper prefix of every separator
	}
	rest := key[c:]
	p := prefixOf(rest)
	i := x.findPrefix(p)
	if i < x.n && x.prefix(i) == p {
		i = x.findTied(i, p, rest)
	}
	return i
}

// Part returns the position of key between the separators of entries i-1 and i, in 256ths, if keys
// are spread evenly between them; -1 if separators do not tell. Find must have returned i for key.
func (x *Index) Part(i int, key []byte) int {
	if i == 0 || i >= x.n {
		return -1
	}
	p, low, high := prefixOf(key[len(x.common):]), x.prefix(i-1), x.prefix(i)
	if p < low || p > high || low == high {
		return -1
	}
	width := high - low
	shift := max(0, bits.Len64(width)-24) // quotients of short numbers are fast
	return min(int(uint32((p-low)>>shift)<<8/uint32(width>>shift)), 255)
}

// findPrefix returns the first entry with a prefix of at least p. The step is written so that the compiler makes it a
// conditional move: the branch of a binary search is a coin toss that no predictor learns.
func (x *Index) findPrefix(p uint64) int {
	prefixes := x.prefixes
	lo, n := 0, x.n
	if x.guide.starts != nil {
		lo, n = x.guide.narrow(p)
	}
	for n > 0 {
		half := n >> 1
		probe := binary.LittleEndian.Uint64(prefixes[8*(lo+half):])
		rest := n - half - 1
		if probe < p {
			lo += half + 1
			half = rest
		}
		n = half
	}
	return lo
}

// findTied returns the first entry at or after i with a rest of at least rest; i is the
// first entry with rest's prefix p.
func (x *Index) findTied(i int, p uint64, rest []byte) int {
	lo, hi := i, x.n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if q := x.prefix(mid); q < p || q == p && bytes.Compare(x.rest(mid), rest) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (x *Index) prefix(i int) uint64 { return binary.LittleEndian.Uint64(x.prefixes[8*i:]) }
func (x *Index) end(i int) uint64    { return binary.LittleEndian.Uint64(x.ends[8*i:]) }

func (x *Index) rest(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = binary.LittleEndian.Uint32(x.restEnds[4*i-4:])
	}
	return x.rests[from:binary.LittleEndian.Uint32(x.restEnds[4*i:])]
}
