package cuckoo

import "slices"

// A set that grows is a chain of tables. A fingerprint cannot be moved to another table, as its key would be needed to
// compute the new one; so keys stay where they were put, and Remove must find out where.
//
// It may not take just any table that holds the key's class. If the key is in one table and another
// key happens to have its class in a second, removing from the second would make that other key a
// false negative. Two rules make the choice safe:
//
//  1. Only the newest table takes classes that it does not hold.
//  2. A key is added to, counted in and removed from its home: the oldest table that holds
//     its class, or the newest if none does.
//
// When a key was added, no table older than its home held its class. By the first rule none of them can hold it since.
// So the home stays the same for as long as the key is in the set, and has all its copies. Remove takes away a copy of
// this key there, or of one that the home cannot tell from it.
//
// The price is that only further copies of their classes use slots that become free in older tables. These may be many:
// each new key has its home in an old table with the probability of a false positive there. So copies without a slot
// are counted in a map, without a limit of 2·B. A table that has become empty is dropped.

// home returns the oldest table that holds the class of a hash, nil if none does.
func (s *Set) home(h uint64) *layer {
	for i := range s.layers {
		if s.layers[i].contains(h) {
			return &s.layers[i]
		}
	}
	return nil
}

// place adds a hash to its home.
func (s *Set) place(h uint64) error {
	if len(s.layers) == 0 {
		return ErrFull
	}
	last := len(s.layers) - 1
	for i := range s.layers[:last] {
		if l := &s.layers[i]; l.contains(h) {
			return l.addCopy(l.placeOf(h))
		}
	}
	newest := &s.layers[last]
	p := newest.placeOf(h)
	err := newest.add(p, &s.path)
	switch {
	case err == nil || s.options.grow == 0:
		return err
	case newest.holds(p):
		return newest.addCopy(p) // its home is here
	case s.extend():
		newest = &s.layers[last+1]
		return newest.add(newest.placeOf(h), &s.path)
	}
	return err
}

// extend appends a table to the chain, if it may: with the shortest fingerprints that no
// other table has, and not longer than the longest.
func (s *Set) extend() bool {
	if s.options.grow == 0 {
		return false
	}
	newest := &s.layers[len(s.layers)-1]
	buckets := newest.buckets * uint64(s.options.grow)
	if buckets > setBuckets(maxKeys, int(s.options.slots)) {
		return false
	}
	for bits := s.options.bits; bits <= maxBits; bits++ {
		taken := slices.ContainsFunc(s.layers, func(l layer) bool { return l.bits == uint64(bits) })
		if !taken {
			s.layers = append(s.layers, s.options.layer(bits, buckets))
			return true
		}
	}
	return false
}

// dropEmpty drops older tables without keys. The newest stays, so that a set with a size
// around a border does not make a table each time.
func (s *Set) dropEmpty() {
	for i := range len(s.layers) - 1 {
		if s.layers[i].len() == 0 {
			s.layers = slices.Delete(s.layers, i, i+1)
			return
		}
	}
}
