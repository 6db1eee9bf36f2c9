package cuckoo

import (
	"errors"

	"github.com/cespare/xxhash/v2"
)

var (
	// ErrFull is returned for a key that finds no place. The set is as it was, and so
	// is the answer for every key in it.
	ErrFull = errors.New("cuckoo: the set is full; remove keys, make it larger, or let it grow (Options.Grow)")

	// ErrTooManyCopies is returned for a key that the set holds 2·B times already, as often as its two buckets have
	// slots. The set is as it was and takes other keys. A set that may grow counts further copies aside, up to 2^32-1.
	ErrTooManyCopies = errors.New("cuckoo: the set holds this key as often as its two buckets have slots; " +
		"use AddNew, more Options.Slots, or Options.Grow")
)

// A Set is a cuckoo filter that lives in an application: keys are added, removed and counted. It is
// a multiset: a key that was added twice is there until it was removed twice.
//
// # Promises
//
// A key is contained from the Add that succeeded until as many Removes as Adds. An
// Add that fails says why, with ErrFull or ErrTooManyCopies, and changes nothing.
// Nothing depends on chance: the same calls give the same set on every machine.
//
// # Removing what was never added
//
// A set knows fingerprints, not keys. Remove always refuses a key if its fingerprint is not there.
// But with a probability of FalsePositiveRate, the fingerprint of a key that was never added is
// there, for another key. Remove would then take that other key away, and the set would deny it. So
// remove only what was added, or choose so low a rate that it does not matter (a bit more per key
// halves it). Or set Options.Guard, which makes Remove exact for the price of the hashes.
//
// # Concurrency
//
// Any number of goroutines may ask a set that none changes. Changes need a lock
// against each other and against questions; a sync.RWMutex serves.
type Set struct {
	options layout
	layers  []layer // oldest first; only the last one takes new fingerprints
	guard   guard   // nil unless asked for
	path    []step  // scratch space of Add
}

// Add adds a key, or adds it once more. An error is ErrFull or ErrTooManyCopies, and leaves the set as it was.
func (s *Set) Add(key []byte) error { return s.AddHash(xxhash.Sum64(key)) }

// AddHash is Add for a key of which only the hash is known. Any 64-bit numbers do, counters too. It
// takes constant time on average, and ends after a bounded search in any case.
func (s *Set) AddHash(h uint64) error {
	if err := s.place(h); err != nil {
		return err
	}
	s.guard.add(h)
	return nil
}

// AddNew adds a key unless Contains, and reports whether it did. A false positive counts as
// contained: such a key is not added but rests on the entry of another, and goes when that one is
// removed. Options.Guard makes AddNew exact, so that this cannot happen.
func (s *Set) AddNew(key []byte) (added bool, err error) {
	return s.AddNewHash(xxhash.Sum64(key))
}

// AddNewHash is AddNew for a key's hash.
func (s *Set) AddNewHash(h uint64) (added bool, err error) {
	contained := s.guard[h] != 0
	if s.guard == nil {
		contained = s.ContainsHash(h)
	}
	if contained {
		return false, nil
	}
	err = s.AddHash(h)
	return err == nil, err
}

// Contains reports whether a key may be in the set; false is certain.
func (s *Set) Contains(key []byte) bool { return s.ContainsHash(xxhash.Sum64(key)) }

// ContainsHash is Contains for a key's hash. It reads two buckets of each table, newest first, and allocates nothing.
func (s *Set) ContainsHash(h uint64) bool {
	for i := len(s.layers) - 1; i >= 0; i-- {
		if s.layers[i].contains(h) {
			return true
		}
	}
	return false
}

// Count returns how often a key is in the set. It is never less than the truth,
// and more where other keys have the same fingerprint and buckets.
func (s *Set) Count(key []byte) int { return s.CountHash(xxhash.Sum64(key)) }

// CountHash is Count for a key's hash.
func (s *Set) CountHash(h uint64) int {
	if l := s.home(h); l != nil {
		return int(l.copies(l.placeOf(h)))
	}
	return 0
}

// Remove takes one copy of a key away and says whether there was one. Read about
// removing what was never added in the description of Set.
func (s *Set) Remove(key []byte) bool { return s.RemoveHash(xxhash.Sum64(key)) }

// RemoveHash is Remove for a key's hash.
func (s *Set) RemoveHash(h uint64) bool {
	l := s.home(h)
	if l == nil || s.guard != nil && s.guard[h] == 0 {
		return false
	}
	l.remove(l.placeOf(h))
	s.guard.remove(h)
	s.dropEmpty()
	return true
}

// Len returns the number of keys in the set, copies counted.
func (s *Set) Len() int {
	n := uint64(0)
	for i := range s.layers {
		n += s.layers[i].len()
	}
	return int(n)
}

// Cap returns the number of keys that the set holds without another table: what it was made for, or a little more. Some
// more fit as a rule before ErrFull. Once the set has grown, only the newest table counts as room.
func (s *Set) Cap() int {
	n := uint64(0)
	for i := range s.layers {
		if i+1 < len(s.layers) {
			n += s.layers[i].len()
		} else {
			n += s.layers[i].capacity()
		}
	}
	return int(n)
}

// LoadFactor returns the share of slots in use, of all tables together.
func (s *Set) LoadFactor() float64 {
	used, slots := uint64(0), uint64(0)
	for i := range s.layers {
		used += s.layers[i].used
		slots += s.layers[i].buckets * s.layers[i].slots
	}
	return float64(used) / float64(max(1, slots))
}

// FalsePositiveRate returns the probability that Contains is true for a key that was never added, given what the set
// holds now. It follows from the number of different fingerprints, which is known, and takes the tables of a chain as
// independent. It reads a few numbers and changes nothing.
func (s *Set) FalsePositiveRate() float64 {
	none := 1.0
	for i := range s.layers {
		none *= 1 - s.layers[i].rate()
	}
	return 1 - none
}

// Tables returns the number of tables in the chain: 1 unless the set has grown.
func (s *Set) Tables() int { return len(s.layers) }

// Size returns the bytes that the tables take in memory. The guard comes on top.
func (s *Set) Size() int {
	n := 0
	for i := range s.layers {
		n += len(s.layers[i].cells)
	}
	return n
}

// Reset removes every key. Of a chain it keeps a table of the newest one's size.
func (s *Set) Reset() {
	switch len(s.layers) {
	case 0:
	case 1:
		s.layers[0].clear()
	default:
		newest := s.layers[len(s.layers)-1].buckets
		s.layers = []layer{s.options.layer(s.options.bits, newest)}
	}
	clear(s.guard)
}

// A guard knows the hashes in a set and how often each is there. The nil guard knows nothing.
type guard map[uint64]uint32

func (g guard) add(h uint64) {
	if g != nil {
		g[h]++
	}
}

func (g guard) remove(h uint64) {
	switch {
	case g[h] > 1:
		g[h]--
	case g != nil:
		delete(g, h)
	}
}
