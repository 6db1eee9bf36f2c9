package quotient

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// ErrUnlike is matched by the error of Merge for filters over different ranges.
var ErrUnlike = errors.New("quotient: filters of different ranges cannot be merged; " +
	"make both for the same number of keys, by NewBuilderFor or New")

// ErrFull is matched by errors for want of room: of Merge if no remainder bit is left, of a Set
// that may not grow, and of either if keys crowd in one place.
var ErrFull = errors.New("quotient: the filter is full")

// Merge appends to dst the filter that says maybe to a key if a or b does, and to no other, and returns the result. The
// filters must be over the same range of values; a filter of no keys goes with any. Merges of the same parts in any
// order give the same bytes, and those of a builder that was given all keys, as long as there is room. When there is
// not, the quotients are doubled at the expense of a remainder bit. It takes one pass over each filter to count and one
// to write, and no memory but the result's.
//
// An error matches ErrUnlike, ErrFull or, for filters that no builder wrote, the sentinel of
// corruption; dst is then returned as it was.
func Merge(dst []byte, a, b *Filter) ([]byte, error) {
	if a.stored == 0 {
		a, b = b, a
	}
	keys, carry := bits.Add64(a.keys, b.keys, 0)
	if carry != 0 {
		keys = math.MaxUint64 // no number that a builder wrote
	}
	d := frame.Description{Keys: keys, Seed: a.seed, Params: uint32(a.table.bits)}
	start := len(dst)
	switch {
	case a.stored == 0:
		return d.Seal(dst, start, frame.Quotient), nil
	case b.stored != 0 && (a.table.values() != b.table.values() || a.seed != b.seed):
		return dst, fmt.Errorf("%w: %d and %d values, seeds %d and %d", ErrUnlike, a.table.values(), b.table.values(),
			a.seed,
			b.seed)
	}
	values := union(&a.table, &b.table)
	n, last := uint64(0), ^uint64(0)
	for v := range values {
		if v != last {
			n++
		}
		last = v
	}
	if n < max(a.stored, b.stored) || n > a.stored+b.stored {
		return dst, frame.Corruptf("%d values in filters that speak of %d and %d", n, a.stored, b.stored)
	}
	quotients, remainderBits := a.table.quotients, a.table.bits
	if b.stored != 0 && b.table.quotients > quotients {
		quotients, remainderBits = b.table.quotients, b.table.bits
	}
	for ; 100*n > load*quotients && remainderBits >= mergedBits; remainderBits-- {
		quotients *= 2
	}
	if remainderBits < mergedBits {
		return dst, fmt.Errorf("%w: %d values in a range of %d", ErrFull, n, a.table.values())
	}
	data, blocks, ok := encode(dst, quotients, remainderBits, values)
	if !ok {
		return dst, fmt.Errorf("%w: more than %d values crowd in one place, or are out of order", ErrFull, maxOffset)
	}
	d.Units, d.Params = blocks, uint32(remainderBits)
	return d.Seal(data, start, frame.Quotient), nil
}

// union yields the values of two tables in order; those of both come twice.
func union(a, b *table) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		c, d := cursor{table: a}, cursor{table: b}
		hash64.Union(c.next, d.next)(yield)
	}
}
