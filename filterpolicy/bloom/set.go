package bloom

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/sizing"
)

// A Set is a Bloom filter that an application fills as it goes: it is made for a number of keys and a false-positive
// rate, and answers at any time. It takes more keys than it was made for, at a growing rate (package scalable grows
// instead), and gives none back (package counting does).
//
// A Set needs a lock if one goroutine adds while another does anything; any number may ask at once. ConcurrentSet needs
// none. The zero Set is only good for UnmarshalBinary and ReadFrom.
type Set struct {
	cells    []byte // a multiple of 8
	probes   int
	keys     int
	capacity int
}

// New returns an empty set that holds n keys, 1 to 2^40, with at most the given rate of false positives, from 1e-12 to
// 0.9. It allocates all its memory at once: 1.44 * log2(1/rate) bits per key, 9.6 at 1 %.
func New(n int, rate float64) (*Set, error) {
	m, probes, err := shape(n, rate)
	if err != nil {
		return nil, err
	}
	return &Set{cells: make([]byte, m/8), probes: probes, capacity: n}, nil
}

func shape(n int, rate float64) (m uint64, probes int, err error) {
	if err := sizing.Check(n, rate, sizing.MinRate); err != nil {
		return 0, 0, err
	}
	m, probes = sizing.Bits(n, rate)
	return m, probes, sizing.Fits(m / 8)
}

// Add adds a key.
func (s *Set) Add(key []byte) { s.AddNewHash(xxhash.Sum64(key)) }

// AddHash adds the key of a hash. Any distinct numbers are as good as hashes.
func (s *Set) AddHash(h uint64) { s.AddNewHash(h) }

// AddNew adds a key and reports whether it was new, in one pass where Contains and Add take two. True is certain; a new
// key is taken for an old one at the rate of false positives.
func (s *Set) AddNew(key []byte) bool { return s.AddNewHash(xxhash.Sum64(key)) }

// AddNewHash is AddNew for the key of a hash.
func (s *Set) AddNewHash(h uint64) bool {
	_ = s.cells[0] // a zero Set would lose the key: it panics as a nil map does
	n := uint64(len(s.cells)) * cellBits
	z := hash64.Mix(h)
	clear := byte(0)
	for i := range s.probes {
		at := hash64.Reduce(hash64.Point(z, i), n)
		cell, bit := &s.cells[at/8], byte(1)<<(at%8)
		clear |= bit &^ *cell
		*cell |= bit
	}
	if clear == 0 {
		return false
	}
	s.keys++
	return true
}

// Contains reports whether a key may have been added; false is certain.
func (s *Set) Contains(key []byte) bool { return s.ContainsHash(xxhash.Sum64(key)) }

// ContainsHash is Contains for the key of a hash. It allocates nothing and stops at the first clear bit.
func (s *Set) ContainsHash(h uint64) bool {
	n := uint64(len(s.cells)) * cellBits
	z := hash64.Mix(h)
	for i := range s.probes {
		at := hash64.Reduce(hash64.Point(z, i), n)
		if s.cells[at/8]>>(at%8)&1 == 0 {
			return false
		}
	}
	return s.probes != 0
}

// Len returns the number of keys added that were new: repeated keys do not count, and keys that were taken for old ones
// do not either.
func (s *Set) Len() int { return s.keys }

// Cap returns the number of keys that the set was made for.
func (s *Set) Cap() int { return s.capacity }

// Size returns the memory of the cells in bytes.
func (s *Set) Size() int { return len(s.cells) }

// FillRatio returns the share of bits that are set, one half when a set is as full as it was made to be. It reads the
// whole set.
func (s *Set) FillRatio() float64 {
	if len(s.cells) == 0 {
		return 0
	}
	return float64(s.ones()) / float64(len(s.cells)*cellBits)
}

func (s *Set) ones() (n int) {
	for cells := s.cells; len(cells) >= 8; cells = cells[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(cells))
	}
	return n
}

// FalsePositiveRate returns the probability that Contains says true for a key that was not added, as the set is now. It
// reads the whole set.
func (s *Set) FalsePositiveRate() float64 { return fillRate(s.FillRatio(), s.probes) }

// fillRate is exact for a known share of set bits.
func fillRate(fill float64, probes int) float64 {
	if fill == 0 {
		return 0
	}
	return math.Pow(fill, float64(probes))
}

// Reset removes all keys and keeps the memory.
func (s *Set) Reset() {
	clear(s.cells)
	s.keys = 0
}

// Merge adds all keys of o, which must have been made for the same number of keys and the same rate. Len is then an
// estimate, as the sets may have keys in common.
func (s *Set) Merge(o *Set) error {
	if len(s.cells) != len(o.cells) || s.probes != o.probes {
		return fmt.Errorf("filterpolicy: bloom sets of %d bits, %d probes and of %d bits, %d probes cannot be merged: "+
			"make both for the same capacity and rate",
			len(s.cells)*cellBits, s.probes, len(o.cells)*cellBits, o.probes)
	}
	for i, cell := range o.cells {
		s.cells[i] |= cell
	}
	s.keys = mergedKeys(s.keys, o.keys, s.FillRatio(), len(s.cells)*cellBits, s.probes)
	return nil
}

// mergedKeys estimates the keys of a union from its fill, between the bounds that are known (S. J. Swamidass and P.
// Baldi, "Mathematical Correction for Fingerprint Similarity Measures to Improve Chemical Retrieval", 2007).
func mergedKeys(a, b int, fill float64, m, probes int) int {
	if fill == 1 {
		return a + b
	}
	estimate := -float64(m) / float64(max(1, probes)) * math.Log1p(-fill)
	return min(max(int(math.Round(estimate)), a, b), a+b)
}
