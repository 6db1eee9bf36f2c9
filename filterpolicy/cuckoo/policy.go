package cuckoo

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "cuckoo"

const (
	minBits      = 4
	maxBits      = 32
	defaultSlots = 4
)

// A Policy is the family with its fingerprint bits, its slots per bucket, and
// whether buckets are semi-sorted. Policies are equal when their specs mean the same.
// The zero value is not a policy; use Parse.
type Policy struct {
	bits, slots uint8
	semisorted  bool
}

// Parse reads "F", "F,B" or "F,4,semisort": fingerprint bits from 4 to 32, and 2, 4
// or 8 slots per bucket, which are 4 unless given. Semi-sorted buckets take a bit
// less per slot for the same rate, and have 4 slots and fingerprints of 5 bits or
// more. In place of F, "rate=0.001" means the fewest bits whose false-positive rate,
// with these slots, is not above it.
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

// parseBits reads fingerprint bits, or the rate that they are to keep in full buckets
// of so many slots.
func parseBits(what, text string, least, slots int) (uint8, error) {
	bits, err := spec.ParseIntOrRate(what, text, least, maxBits, func(bits int) float64 { return limit(bits, slots) })
	return uint8(bits), err
}

// safeLoad returns the percentage of slots that may be filled so that the first
// attempt at building nearly always succeeds, or 0 for a number of slots that no
// bucket has. Tables first fail some points above it.
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

// plain returns the policy without semi-sorting: that of the table being built.
func (p Policy) plain() Policy { return Policy{bits: p.bits, slots: p.slots} }

// sorting returns how buckets are semi-sorted, nil if they are not.
func (p Policy) sorting() *sorting {
	if !p.semisorted {
		return nil
	}
	return sortingOf(uint32(p.bits))
}

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{policy: p.plain(), sorting: p.sorting()} }
