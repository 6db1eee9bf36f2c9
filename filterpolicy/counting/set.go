package counting

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/sizing"
)

// Options are what New may be told beyond capacity and rate. Nil and zero fields mean the defaults.
type Options struct {
	// CounterBits is the width of a counter: 4 for keys that are added a few
	// times at most, 8 for more. The default is 4.
	CounterBits int
}

// A Set is a counting Bloom filter. It takes more keys than it was made for, at
// a growing rate of false positives.
//
// A Set needs a lock if one goroutine adds or removes while another does anything; any number may
// ask at once. The zero Set is only good for UnmarshalBinary and ReadFrom.
type Set struct {
	counters counters
	slice    uint64 // counters per probe
	probes   int
	keys     int
	capacity int
}

// New returns an empty set that holds n keys, 1 to 2^40, with at most the given rate of false
// positives, from 1e-12 to 0.9. It allocates all its memory at once.
func New(n int, rate float64, o *Options) (*Set, error) {
	if err := sizing.Check(n, rate, sizing.MinRate); err != nil {
		return nil, err
	}
	narrow := true
	if o != nil {
		switch o.CounterBits {
		case 0, 4:
		case 8:
			narrow = false
		default:
			return nil, fmt.Errorf("filterpolicy: counters must have 4 or 8 bits, not %d", o.CounterBits)
		}
	}
	slice, probes := sizing.Slice(n, rate)
	size := cellsLen(slice*uint64(probes), narrow)
	if err := sizing.Fits(size); err != nil {
		return nil, err
	}
	return &Set{counters{make([]byte, size), narrow}, slice, probes, 0, n}, nil
}

// at returns the counter of a mixed hash in slice i.
func (s *Set) at(z uint64, i int) uint64 {
	return uint64(i)*s.slice + hash64.Reduce(hash64.Point(z, i), s.slice)
}

// Add adds a key, once more if it is there.
func (s *Set) Add(key []byte) { s.AddHash(xxhash.Sum64(key)) }

// AddHash adds the key of a hash. Any distinct numbers are as good as hashes.
func (s *Set) AddHash(h uint64) {
	_ = s.counters.cells[0] // a zero Set would lose the key: it panics as a nil map does
	z := hash64.Mix(h)
	for i := range s.probes {
		s.counters.up(s.at(z, i))
	}
	s.keys++
}

// AddNew adds a key unless Contains, and reports whether it did. A false positive
// counts as contained: such a key is not added but rests on the counters of
// others, and goes when they are removed.
func (s *Set) AddNew(key []byte) bool { return s.AddNewHash(xxhash.Sum64(key)) }

// AddNewHash is AddNew for the key of a hash.
func (s *Set) AddNewHash(h uint64) bool {
	if s.ContainsHash(h) {
		return false
	}
	s.AddHash(h)
	return true
}

// Remove takes back one Add of a key and reports whether it did. It refuses, and changes nothing,
// when it can tell that the key is not there. A key that was never added and is removed all the
// same costs other keys a count; see the package comment.
//
// A key stays if all of its counters are saturated, though Remove returns true.
func (s *Set) Remove(key []byte) bool { return s.RemoveHash(xxhash.Sum64(key)) }

// RemoveHash is Remove for the key of a hash.
func (s *Set) RemoveHash(h uint64) bool {
	if !s.ContainsHash(h) {
		return false
	}
	z := hash64.Mix(h)
	for i := range s.probes {
		s.counters.down(s.at(z, i))
	}
	s.keys = max(0, s.keys-1)
	return true
}

// Contains reports whether a key may be there; false is certain.
func (s *Set) Contains(key []byte) bool { return s.ContainsHash(xxhash.Sum64(key)) }

// ContainsHash is Contains for the key of a hash. It allocates nothing and stops
// at the first zero counter.
func (s *Set) ContainsHash(h uint64) bool {
	z := hash64.Mix(h)
	for i := range s.probes {
		if s.counters.get(s.at(z, i)) == 0 {
			return false
		}
	}
	return s.probes != 0
}

// Count returns how many times a key is there: at least the times that it was
// added less those it was removed, and more only at the rate of false positives.
// A result of MaxCount means that many or more.
func (s *Set) Count(key []byte) int { return s.CountHash(xxhash.Sum64(key)) }

// CountHash is Count for the key of a hash.
func (s *Set) CountHash(h uint64) int {
	least := s.counters.top()
	z := hash64.Mix(h)
	for i := range s.probes {
		least = min(least, s.counters.get(s.at(z, i)))
	}
	if s.probes == 0 {
		return 0
	}
	return int(least)
}

// MaxCount returns the most that Count can tell, 15 or 255.
func (s *Set) MaxCount() int { return int(s.counters.top()) }

// Len returns the number of keys added less those removed; a key that was added twice counts twice.
func (s *Set) Len() int { return s.keys }

// Cap returns the number of distinct keys that the set was made for.
func (s *Set) Cap() int { return s.capacity }

// Size returns the memory of the counters in bytes.
func (s *Set) Size() int { return len(s.counters.cells) }

// FillRatio returns the share of counters that are not zero, about one half when
// a set is as full as it was made to be. It reads the whole set.
func (s *Set) FillRatio() float64 {
	sum := 0.0
	for i := range s.probes {
		sum += s.sliceFill(i)
	}
	return sum / float64(max(1, s.probes))
}

// FalsePositiveRate returns the probability that Contains says true for a key
// that is not there, as the set is now. It reads the whole set.
func (s *Set) FalsePositiveRate() float64 {
	if s.probes == 0 {
		return 0
	}
	rate := 1.0
	for i := range s.probes {
		rate *= s.sliceFill(i)
	}
	return rate
}

// sliceFill returns the share of counters of slice i that are not zero.
func (s *Set) sliceFill(i int) float64 {
	from, used := uint64(i)*s.slice, 0
	for at := range s.slice {
		if s.counters.get(from+at) != 0 {
			used++
		}
	}
	return float64(used) / float64(s.slice)
}

// Saturated returns the number of counters that have reached their top and never
// change again, until Reset. It reads the whole set.
func (s *Set) Saturated() (n int) {
	for i := range s.slice * uint64(s.probes) {
		if s.counters.get(i) == s.counters.top() {
			n++
		}
	}
	return n
}

// Reset removes all keys and keeps the memory.
func (s *Set) Reset() {
	clear(s.counters.cells)
	s.keys = 0
}

// Merge adds all keys of o, with their counts, which must have been made for the
// same number of keys, the same rate and with the same options.
func (s *Set) Merge(o *Set) error {
	if s.slice != o.slice || s.probes != o.probes || s.counters.narrow != o.counters.narrow {
		return fmt.Errorf("filterpolicy: counting sets of %d*%d counters up to %d and of %d*%d up to %d cannot be "+
			"merged: make both for the same capacity and rate, with the same options",
			s.probes, s.slice, s.MaxCount(), o.probes, o.slice, o.MaxCount())
	}
	for i := range s.slice * uint64(s.probes) {
		a, b := s.counters.get(i), o.counters.get(i)
		s.counters.add(i, min(b, s.counters.top()-a))
	}
	s.keys += o.keys
	return nil
}
