package cuckoo

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "cuckoo"

const (
	minBits      = 4
	maxBits      = 32
	defaultSlots = 4
)

// A Policy is the family with its fingerprint bits, its slots per bucket, and whether buckets are semi-sorted. Policies
// are equal when their specs mean the same. The zero value is not a policy; use Parse.
type Policy struct {
	bits, slots uint8
	semisorted  bool
}

// Parse reads "F", "F,B" or "F,4,semisort": fingerprint bits from 4 to 32, and 2, 4 or 8 slots per
// bucket, which are 4 unless given. Semi-sorted buckets take a bit less per slot for the same rate,
// and have 4 slots and fingerprints of 5 bits or more. In place of F, "rate=0.001" means the fewest
// bits whose false-positive rate, with these slots, is not above it.
func Parse(args string) (Policy, error) {
	p, err := parse(args)
	return p, spec.Wrap(err, Name, args, "cuckoo:12,4")
}

func parse(args string) (Policy, error) {
	first, second, given := strings.Cut(args, ",")
	plain, sorted := strings.CutSuffix(second, ","+semisortName)
	if sorted {
		return parseSemisorted(first, plain)
	}
	slots := defaultSlots
	if given {
		var err error
		slots, err = strconv.Atoi(second)
		if err != nil || safeLoad(slots) == 0 || len(second) != 1 {
			return Policy{}, fmt.Errorf("slots per bucket must be 2, 4 or 8, not %q", second)
		}
	}
	bits, err := parseBits("fingerprint bits", first, minBits, slots)
	if err != nil {
		return Policy{}, err
	}
	return Policy{bits: bits, slots: uint8(slots)}, nil
}

func parseSemisorted(first, second string) (Policy, error) {
	if second != strconv.Itoa(semisortSlots) {
		return Policy{}, fmt.Errorf("slots per semi-sorted bucket must be %d, not %q", semisortSlots, second)
	}
	bits, err := parseBits("fingerprint bits of semi-sorted buckets", first, semisortMinBits, semisortSlots)
	if err != nil {
		return Policy{}, err
	}
	return Policy{bits: bits, slots: semisortSlots, semisorted: true}, nil
}

// parseBits reads fingerprint bits, or the rate that they are to keep in full buckets of that many slots.
func parseBits(what, text string, least, slots int) (uint8, error) {
	bits, err := spec.ParseIntOrRate(what, text, least, maxBits, func(bits int) float64 { return limit(bits, slots) })
	return uint8(bits), err
}

// safeLoad returns the percentage of slots that may be filled so that the first attempt at building nearly always
// succeeds, or 0 for a number of slots that no bucket has. Tables first fail some points above it.
func safeLoad(slots int) uint64 {
	switch slots {
	case 2:
		return 84
	case 4:
		return 95
	case 8:
		return 98
	}
	return 0
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec; the usual number of slots is left out where it may be, and a
// rate is given as the bits that it stands for.
func (p Policy) String() string {
	s := Name + ":" + strconv.Itoa(int(p.bits))
	if p.semisorted {
		return s + "," + strconv.Itoa(semisortSlots) + "," + semisortName
	}
	if p.slots != defaultSlots {
		s += "," + strconv.Itoa(int(p.slots))
	}
	return s
}

func (p Policy) shape() *shape { return shapeOf(uint32(p.bits), uint32(p.slots)) }

// sorting returns how buckets are semi-sorted, nil if they are not.
func (p Policy) sorting() *sorting {
	if !p.semisorted {
		return nil
	}
	return sortingOf(uint32(p.bits))
}

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{policy: p} }

// Expected returns the size and the false-positive rate of a filter of the given number of distinct
// keys. The size counts the footer; it is exact unless the first attempt at building fails. A
// filter too large to build has no bits and says maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) {
	if keys <= 0 {
		return 0, 0
	}
	buckets, ok := p.bucketsFor(uint64(keys))
	if !ok {
		return 0, 1
	}
	n := float64(keys)
	size := p.shape().size(buckets)
	if s := p.sorting(); s != nil {
		size = s.size(buckets)
	}
	return 8 * float64(size+frame.FooterLen) / n, -math.Expm1(-p.chance(buckets) * n)
}

// bucketsFor returns the number of buckets, an even one, that n distinct keys fill
// to the safe load; false if the table would not fit the address space.
func (p Policy) bucketsFor(n uint64) (buckets uint64, ok bool) {
	const most = 1 << 44 // well above memory, well below overflow
	if n > most {
		return 0, false
	}
	perPair := 2 * uint64(p.slots) * safeLoad(int(p.slots)) // hundredths of a key
	buckets = 2 * max(1, (100*n+perPair-1)/perPair)
	size := p.shape().size(buckets)
	return buckets, size == uint64(int(size)) && int(size) >= 0
}

// chance is the probability that a probe finds one given stored fingerprint: it
// reads two buckets and looks for one of 2^F-1 values.
//
// A bucket holds no value twice, nor does its partner for that value, so with s fingerprints stored a probe says maybe
// with probability c*s exactly. A new key is stored unless the probe for it says maybe; so n distinct keys leave
//
//	s = (1 - exp(-c n)) / c
//
// fingerprints and a false-positive rate of 1 - exp(-c n), which is the 1 - (1 -
// 1/(2^F-1))^(2 B load) of the literature.
func (p Policy) chance(buckets uint64) float64 {
	return 2 / (float64(buckets) * (math.Exp2(float64(p.bits)) - 1))
}

// limit is the false-positive rate of large tables with these fingerprint bits and slots per
// bucket, filled to the safe load. No smaller table's is above it, as the buckets are rounded up.
func limit(bits, slots int) float64 {
	perBucket := float64(slots) * float64(safeLoad(slots)) / 100
	return -math.Expm1(-2 * perBucket / (math.Exp2(float64(bits)) - 1))
}

// distinct estimates how many of n hashes were distinct, given the fingerprints that they left.
func (p Policy) distinct(n, stored, buckets uint64) uint64 {
	c := p.chance(buckets)
	full := min(1, c*float64(stored)) // 1: the table says maybe to everything
	return uint64(min(float64(n), math.Ceil(-math.Log1p(-full)/c)))
}
