package blocked

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/sizing"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// A Set is a blocked Bloom filter that an application fills as it goes: adding and asking cost one cache miss each,
// where a bloom set has one for each probe. It takes more keys than it was made for, at a growing rate of false
// positives, and gives none back.
//
// A Set needs a lock if one goroutine adds while another does anything; any number may ask at once. The zero Set is
// only good for UnmarshalBinary and ReadFrom.
type Set struct {
	cells    []byte
	filter   Filter // over cells; no lines in a zero Set
	keys     int
	capacity int
}

// maxSetBits is the most memory per key that a Set will take for a low rate.
const maxSetBits = 64 * spec.One

// New returns an empty set that holds n keys, 1 to 2^40, with at most the given rate of false positives, from 1e-12 to
// 0.9. It allocates all its memory at once: 9.9 bits per key at 1 %, 15.7 at 0.1 %. Rates below about 1e-7 would take
// more than 64 bits per key and are refused; bloom sets have them for less.
func New(n int, rate float64) (*Set, error) {
	lines, probes, err := Shape(n, rate)
	if err != nil {
		return nil, err
	}
	return newSet(make([]byte, lines*LineLen), probes, 0, n), nil
}

func newSet(cells []byte, probes, keys, capacity int) *Set {
	return &Set{cells, Filter{lines: linesOf(cells), probes: probes}, keys, capacity}
}

// BitsFor returns the bits per key of the set that New makes for n keys at the rate, or New's error.
func BitsFor(n int, rate float64) (bitsPerKey float64, err error) {
	keyBits, err := bitsFor(n, rate)
	return keyBits.Float(), err
}

// bitsFor returns the fewest bits per key whose theoretical rate is low enough.
func bitsFor(n int, promised float64) (spec.Bits, error) {
	if err := sizing.Check(n, promised, sizing.MinRate); err != nil {
		return 0, err
	}
	fits := func(b spec.Bits) bool {
		lines, _ := b.Units(n, lineBits)
		return rate(float64(n), float64(lines), probesFor(b)) <= promised
	}
	lo, hi := minBits, maxSetBits // hi fits, or is not known to
	if !fits(hi) {
		return 0, fmt.Errorf("filterpolicy: a blocked set of %d keys has no rate of %g within %s bits per key: "+
			"take a bloom set, or a higher rate", n, promised, maxSetBits)
	}
	for lo < hi {
		if mid := (lo + hi) / 2; fits(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return hi, nil
}

// Add adds a key.
func (s *Set) Add(key []byte) { s.AddNewHash(xxhash.Sum64(key)) }

// AddHash adds the key of a hash. Any distinct numbers are as good as hashes.
func (s *Set) AddHash(h uint64) { s.AddNewHash(h) }

// AddNew adds a key and reports whether it was new. True is certain; a new key is taken for an old one at the rate of
// false positives.
func (s *Set) AddNew(key []byte) bool { return s.AddNewHash(xxhash.Sum64(key)) }

// AddNewHash is AddNew for the key of a hash.
func (s *Set) AddNewHash(h uint64) bool {
	if s.ContainsHash(h) {
		return false
	}
	z := Locate(h).z
	// A zero Set would lose the key: it panics here as a nil map does.
	l := &s.filter.lines[hash64.Reduce(z, uint64(len(s.filter.lines)))]
	l.set(firstWord(z), min(s.filter.probes, perWord))
	if s.filter.probes > perWord {
		l.set(secondWord(z), s.filter.probes-perWord)
	}
	s.keys++
	return true
}

// Contains reports whether a key may have been added; false is certain.
func (s *Set) Contains(key []byte) bool { return s.ContainsHash(xxhash.Sum64(key)) }

// ContainsHash is Contains for the key of a hash. It allocates nothing and reads one line.
func (s *Set) ContainsHash(h uint64) bool {
	// Mixing once more than a file's filter keeps the promise for unmixed numbers, in sets of few lines too.
	return len(s.filter.lines) != 0 && s.filter.MayContainHash(hash64.Mix(h))
}

// Len returns the number of keys added that were new: repeated keys do not count, and keys that were taken for old ones
// do not either.
func (s *Set) Len() int { return s.keys }

// Cap returns the number of keys that the set was made for.
func (s *Set) Cap() int { return s.capacity }

// Size returns the memory of the cells in bytes.
func (s *Set) Size() int { return len(s.cells) }

// FillRatio returns the share of bits that are set. It reads the whole set.
func (s *Set) FillRatio() float64 {
	if len(s.cells) == 0 {
		return 0
	}
	n := 0
	for i := range s.filter.lines {
		n += s.filter.lines[i].ones()
	}
	return float64(n) / float64(len(s.cells)*8)
}

func (l *line) ones() (n int) {
	for at := 0; at < LineLen; at += 8 {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(l[at:]))
	}
	return n
}

// FalsePositiveRate returns the probability that Contains says true for a key that was not added, as the set is now:
// the mean over its lines. It reads the whole set.
func (s *Set) FalsePositiveRate() float64 {
	var of [lineBits + 1]int // lines by the number of their set bits
	for i := range s.filter.lines {
		of[s.filter.lines[i].ones()]++
	}
	sum := 0.0
	for ones, lines := range of {
		rate := 1.0
		for range s.filter.probes {
			rate *= float64(ones) / lineBits
		}
		sum += rate * float64(lines)
	}
	return sum / float64(max(1, len(s.filter.lines)))
}

// Reset removes all keys and keeps the memory.
func (s *Set) Reset() {
	clear(s.cells)
	s.keys = 0
}

// Merge adds all keys of o, which must have been made for the same number of keys and the same rate. Len is then at
// most the sum of both: the sets may have keys in common.
func (s *Set) Merge(o *Set) error {
	if len(s.cells) != len(o.cells) || s.filter.probes != o.filter.probes {
		return fmt.Errorf("filterpolicy: blocked sets of %d lines, %d probes and of %d lines, %d probes cannot be "+
			"merged: make both for the same capacity and rate",
			len(s.filter.lines), s.filter.probes, len(o.filter.lines), o.filter.probes)
	}
	for i, cell := range o.cells {
		s.cells[i] |= cell
	}
	s.keys += o.keys
	return nil
}
