package cuckoo

import (
	"errors"
	"fmt"
	"math"
)

// Options are what New may be told besides capacity and rate. The zero value of each field means its default.
type Options struct {
	// Slots is B, the slots of a bucket: 2, 4 or 8. The default, 4, suits most sets.
	// With 8 a key may be there more often, at some more bits per key for the same rate.
	Slots int

	// Bits is F, the bits of a fingerprint: 4 to 32. By default the rate given to New
	// chooses them; if Bits is set, that rate must be 0.
	Bits int

	// Grow lets a full set take on another table, each this many times as large as the one before: 1 to 8. The default,
	// 0, keeps the set at its size. Each table's fingerprints have a length of their own, usually a bit more than the
	// longest, so that the chain as a whole keeps the rate. Each table costs every lookup two more buckets. The set is
	// full when fingerprints of 32 bits are in use: with a rate of 1 % and four slots after 22 tables.
	Grow int

	// Guard keeps the 64-bit hash of each key in a map, so that Remove and AddNew are
	// exact. It costs some 20 to 40 bytes per key, many times the filter: it is meant for
	// development and for sets that remove on hearsay. Contains and Count do not use it.
	Guard bool
}

const (
	maxKeys = 1 << 32 // capacity of one table
	maxGrow = 8
)

// A layout is what all tables of a set have in common, as it is stored.
type layout struct {
	bits  uint8 // F of the first table
	slots uint8
	grow  uint8
}

// New makes an empty set for n keys, copies counted, with a false-positive rate that
// stays below the given one until Add says ErrFull, however the set grows. opts may
// be nil. Memory for n keys is taken at once: for a rate of 1 %, 11 bits per key.
func New(n int, rate float64, opts *Options) (*Set, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Slots == 0 {
		o.Slots = defaultSlots
	}
	if err := o.check(n, rate); err != nil {
		return nil, err
	}
	buckets := setBuckets(uint64(n), o.Slots)
	if o.Bits == 0 {
		o.Bits = o.bitsFor(rate, buckets)
	}
	switch {
	case o.Bits > maxBits:
		return nil, fmt.Errorf("cuckoo: a rate of %g needs fingerprints of more than %d bits; ask for at least 1e-8",
			rate, maxBits)
	case o.Bits == maxBits && o.Grow != 0:
		return nil, fmt.Errorf("cuckoo: fingerprints of %d bits leave none to grow by; "+
			"use fewer, a higher rate, or no Options.Grow", maxBits)
	}
	s := &Set{options: layout{uint8(o.Bits), uint8(o.Slots), uint8(o.Grow)}}
	s.layers = []layer{s.options.layer(s.options.bits, buckets)}
	if o.Guard {
		s.guard = guard{}
	}
	return s, nil
}

func (o *Options) check(n int, rate float64) error {
	switch {
	case n < 1 || uint64(n) > maxKeys:
		return fmt.Errorf("cuckoo: a set is for 1 to %d keys, not %d", uint64(maxKeys), n)
	case safeLoad(o.Slots) == 0:
		return fmt.Errorf("cuckoo: Options.Slots must be 2, 4 or 8, not %d", o.Slots)
	case o.Grow < 0 || o.Grow > maxGrow:
		return fmt.Errorf("cuckoo: Options.Grow must be 0 to %d, not %d", maxGrow, o.Grow)
	case o.Bits != 0 && (o.Bits < minBits || o.Bits > maxBits):
		return fmt.Errorf("cuckoo: Options.Bits must be %d to %d, not %d", minBits, maxBits, o.Bits)
	case o.Bits != 0 && rate != 0:
		return errors.New("cuckoo: a rate and Options.Bits were given; one follows from the other, set one to 0")
	case o.Bits == 0 && !(rate > 0 && rate < 1):
		return fmt.Errorf("cuckoo: the rate must be above 0 and below 1, not %g", rate)
	}
	return nil
}

// setBuckets returns the buckets, an even number, that hold n keys at the safe load. Small tables
// differ by chance, the more the fewer slots a bucket has; they get room for 4 sqrt(n)/B^2 keys
// more, so that hardly one in a thousand is full before its n keys.
func setBuckets(n uint64, slots int) uint64 {
	n += uint64(4*math.Sqrt(float64(n))) / uint64(slots*slots)
	perPair := 2 * uint64(slots) * safeLoad(slots) // hundredths of a key
	return 2 * max(1, (100*n+perPair-1)/perPair)
}

// layer returns a table of the set. Its seed follows from its bits, so that
// tables of a chain scatter keys independently of each other.
func (o layout) layer(bits uint8, buckets uint64) layer {
	return layer{table: *newTable(Policy{bits: bits, slots: o.slots}, buckets, uint32(bits-o.bits))}
}

// bitsFor returns the fewest bits that keep the rate when every slot of the first table and its victim are taken by
// different keys; more than maxBits if none do. Larger tables stay below that. Each table of a chain has at least a bit
// more than another one, so all of them together have less than twice the rate of the first.
func (o *Options) bitsFor(rate float64, buckets uint64) int {
	if o.Grow != 0 {
		rate /= 2
	}
	keys := float64(buckets*uint64(o.Slots) + 1)
	bits := minBits
	for bits <= maxBits && (Policy{bits: uint8(bits), slots: uint8(o.Slots)}).chance(buckets)*keys > rate {
		bits++
	}
	return bits
}
