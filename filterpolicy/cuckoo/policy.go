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

// A Policy is the family with its fingerprint bits and its slots per bucket.
// Policies are equal when their specs mean the same. The zero value is not a
// policy; use Parse.
type Policy struct {
	bits, slots uint8
}

// Parse reads "F" or "F,B": fingerprint bits from 4 to 32, and 2, 4 or 8 slots per
// bucket, which are 4 unless given.
func Parse(args string) (Policy, error) {
	p, err := parse(args)
	if err != nil {
		return Policy{}, spec.Errorf(Name+":"+args, "cuckoo:12,4", "%v", err)
	}
	return p, nil
}

func parse(args string) (Policy, error) {
	first, second, given := strings.Cut(args, ",")
	bits, err := spec.ParseInt("fingerprint bits", first, minBits, maxBits)
	if err != nil {
		return Policy{}, err
	}
	slots := defaultSlots
	if given {
		slots, err = strconv.Atoi(second)
		if err != nil || safeLoad(slots) == 0 || len(second) != 1 {
			return Policy{}, fmt.Errorf("slots per bucket must be 2, 4 or 8, not %q", second)
		}
	}
	return Policy{uint8(bits), uint8(slots)}, nil
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

// String returns the spec; the usual number of slots is left out.
func (p Policy) String() string {
	s := Name + ":" + strconv.Itoa(int(p.bits))
	if p.slots != defaultSlots {
		s += "," + strconv.Itoa(int(p.slots))
	}
	return s
}

func (p Policy) shape() *shape { return shapeOf(uint32(p.bits), uint32(p.slots)) }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{policy: p} }
