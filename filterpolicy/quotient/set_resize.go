package quotient

import (
	"fmt"
	"iter"
)

// full returns the error of a set that has no room and may not grow.
func full() error {
	return fmt.Errorf("%w: remove keys, make it larger (Resize), or let it grow (Options.Grow)", ErrFull)
}

// crowded returns the error for values that crowd beyond what an offset counts.
func crowded() error {
	return fmt.Errorf("%w: more than %d values crowd in one place", ErrFull, maxOffset)
}

// Resize makes room for n different keys, and for those that are there, by doubling or halving the set as often as that
// takes. It needs no keys: each doubling turns a bit of the remainders into one of the quotients, each halving the
// other way. Values stay what they are, and so does every answer.
//
// The rate is that of FalsePositiveRate: it rises with the keys that are added, above the promised one when they are
// more than the set was made for, doubled by Options.Grow. When no bit is left, the error matches ErrFull and the
// set is as it was.
func (s *Set) Resize(n int) error {
	room := max(uint64(max(n, 0)), s.stored)
	quotients, bits, ok := s.sized(room, mergedBits)
	if !ok {
		return fmt.Errorf("%w: no remainder bits are left for %d keys; make a set for more keys", ErrFull, n)
	}
	for bits < setBits && quotients%2 == 0 && quotients/2*load/100 >= room {
		quotients, bits = quotients/2, bits+1
	}
	if quotients == s.table.quotients {
		return nil
	}
	return s.rebuild(quotients, bits, s.table.ascending())
}

// sized returns the geometry of the set doubled until it holds n values; false if that leaves fewer
// remainder bits than the least.
func (s *Set) sized(n, least uint64) (quotients, bits uint64, ok bool) {
	quotients, bits = s.table.quotients, s.table.bits
	for quotients*load/100 < n {
		if bits <= least {
			return 0, 0, false
		}
		quotients, bits = 2*quotients, bits-1
	}
	return quotients, bits, true
}

// rebuild gives the table another geometry over the same range, and the values.
func (s *Set) rebuild(quotients, bits uint64, values iter.Seq[uint64]) error {
	data, blocks, ok := encode(nil, quotients, bits, values)
	if !ok {
		return crowded()
	}
	end := len(data) - trailerLen
	s.table = table{data[:end], blocks, quotients, bits}
	return nil
}

// Merge adds all keys of o with their copies to s, and leaves o alone. Both must know keys by the same values, as they
// do when New was told the same number of keys, rate and options, whatever has become of their sizes since. s grows as
// it does by Add. It takes one pass over both sets to count and one to write, and memory for the result besides them.
//
// An error matches ErrUnlike or ErrFull, and leaves s as it was.
func (s *Set) Merge(o *Set) error {
	if s.table.values() != o.table.values() {
		return fmt.Errorf("%w: %d and %d values", ErrUnlike, s.table.values(), o.table.values())
	}
	if s.Len() > maxLen-o.Len() {
		return full()
	}
	n := uint64(0)
	extra := map[uint64]uint64{}
	last := ^uint64(0)
	for v := range union(&s.table, &o.table) {
		if v == last {
			extra[v] = 1
		} else {
			n++
		}
		last = v
	}
	quotients, bits, ok := s.sized(n, min(s.floor, s.table.bits))
	if !ok {
		return full()
	}
	copies := uint64(s.Len()+o.Len()) - n
	for _, counted := range []map[uint64]uint64{s.extra, o.extra} {
		for v, times := range counted {
			extra[v] += times
		}
	}
	if err := s.rebuild(quotients, bits, union(&s.table, &o.table)); err != nil {
		return err
	}
	s.stored, s.copies, s.extra = n, copies, extra
	return nil
}
