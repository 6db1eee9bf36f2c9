package peel

import (
	"math/bits"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// The hashes are split by their first bits into parts. The parts are few enough that each is written through a cache
// line of its own, and short enough that duplicates are found in the CPU's first cache.
const (
	partKeys = 512
	maxParts = 1 << 12
)

// maxSlots is the size of the hash table that finds duplicates. It takes parts of fewer
// than half as many keys: 64 million in all. Larger ones are sorted.
const maxSlots = 1 << 15

// deal sets keys to the mixed hashes, each once, in an order that is nearly
// ascending: neighbours in the list have their first places near each other.
func (s *scratch) deal(hashes *hash64.List, seed uint32) {
	n := hashes.Len()
	salt := uint64(seed) * hash64.Golden
	partBits := bits.Len64(min(maxParts-1, uint64(n)/partKeys))
	shift := 64 - partBits // a shift by 64 leaves part 0
	s.ends = resized(s.ends, 1<<partBits)
	clear(s.ends)
	for chunk := range hashes.Chunks() {
		for _, h := range chunk {
			s.ends[hash64.Mix(h^salt)>>shift]++
		}
	}
	start := uint32(0)
	for i, size := range s.ends {
		s.ends[i] = start
		start += size
	}
	s.keys = resized(s.keys, n)
	for chunk := range hashes.Chunks() {
		for _, h := range chunk {
			z := hash64.Mix(h ^ salt)
			end := &s.ends[z>>shift]
			s.keys[*end] = z
			*end++
		}
	}
	s.deduplicate()
}

// deduplicate moves the first of equal keys together, part by part.
func (s *scratch) deduplicate() {
	kept, start := 0, uint32(0)
	for _, end := range s.ends {
		part := s.keys[start:end]
		if len(part) < maxSlots/2 {
			kept += s.distinct(s.keys[kept:], part)
		} else {
			slices.Sort(part)
			kept += copy(s.keys[kept:], slices.Compact(part))
		}
		start = end
	}
	s.keys = s.keys[:kept]
}

// distinct copies the first of equal keys of a part to dst, which begins at the part or
// before it, and returns how many there are.
func (s *scratch) distinct(dst, part []uint64) (kept int) {
	tableBits := bits.Len(uint(len(part))) + 1 // at most half full
	slots := s.slots[:1<<tableBits]
	clear(slots)
	last := uint64(len(slots) - 1)
	for _, z := range part {
		at := z * hash64.Golden >> (64 - tableBits)
		for slots[at] != 0 && dst[slots[at]-1] != z {
			at = (at + 1) & last
		}
		if slots[at] == 0 {
			dst[kept] = z
			kept++
			slots[at] = uint16(kept)
		}
	}
	return kept
}
