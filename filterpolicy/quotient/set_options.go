package quotient

import (
	"fmt"
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/sizing"
)

// Options are what New may be told beyond capacity and rate. Nil and zero fields mean the defaults.
type Options struct {
	// Grow is how many times Add and Merge may double a set that is full: 0, the
	// default, to 32. Each doubling takes a bit from the remainders; New provides for it, so that the
	// rate holds up to the end, and a key costs a bit more from the outset for each.
	Grow int
}

const (
	maxGrow = 32

	// setBits bounds the remainders of a set. Eight bytes hold one at any bit of a byte.
	setBits = 56
)

// New makes an empty set for n different keys, with a false-positive rate that stays below
// the given one until Add says ErrFull, however the set grows by Options.Grow. opts may be nil.
// Memory for n keys is taken at once: for a rate of 1 %, 9.8 bits per key.
func New(n int, rate float64, opts *Options) (*Set, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if err := sizing.Check(n, rate, sizing.MinRate); err != nil {
		return nil, err
	}
	if o.Grow < 0 || o.Grow > maxGrow {
		return nil, fmt.Errorf("quotient: Options.Grow must be 0 to %d, not %d", maxGrow, o.Grow)
	}
	floor := remainderBitsFor(uint64(n), rate)
	bits := floor + uint64(o.Grow)
	quotients, ok := quotientsFor(uint64(n), min(bits, setBits))
	if !ok || bits > setBits {
		return nil, fmt.Errorf("quotient: %d keys at a rate of %g that double %d times do not fit 64 bits or the "+
			"address space; ask for fewer keys, a higher rate, or less Options.Grow", n, rate, o.Grow)
	}
	s := &Set{floor: floor}
	s.table = table{quotients: quotients, bits: bits, blocks: (quotients + blockSlots - 1) / blockSlots}
	s.table.cells = make([]byte, s.table.blocks*blockLen(bits))
	return s, nil
}

// remainderBitsFor returns the fewest bits that keep the rate in a table for n keys that is
// full. Doubling keeps the share of quotients in use or lowers it.
func remainderBitsFor(n uint64, rate float64) uint64 {
	quotients, ok := quotientsFor(n, 1)
	if !ok {
		return setBits + 1
	}
	full := float64(quotients*load/100) / float64(quotients)
	bits := uint64(mergedBits)
	for full*math.Exp2(-float64(bits)) > rate {
		bits++
	}
	return bits
}
