package fuse

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy/internal/fingerprint"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/peel"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "fuse"

const defaultArity = 3

// A Policy is the family with its fingerprint bits and the number of places of a
// key. Policies are equal when their specs mean the same. The zero value is not a
// policy; use Parse.
type Policy struct {
	bits, arity uint8
}

// Parse reads "F" or "F,W": fingerprint bits from 4 to 32, and 3 or 4 places per
// key, which are 3 unless given. In place of F, "rate=0.004" means the fewest bits
// whose false-positive rate is not above it.
func Parse(args string) (Policy, error) {
	p, err := parse(args)
	return p, spec.Wrap(err, Name, args, "fuse:8")
}

func parse(args string) (Policy, error) {
	first, second, given := strings.Cut(args, ",")
	bits, err := fingerprint.ParseBits(first)
	if err != nil {
		return Policy{}, err
	}
	if !given || second == "3" {
		return Policy{bits, defaultArity}, nil
	}
	if second != "4" {
		return Policy{}, fmt.Errorf("places per key must be 3 or 4, not %q", second)
	}
	return Policy{bits, 4}, nil
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec; the usual number of places is left out, and a rate is
// given as the bits that it stands for.
func (p Policy) String() string {
	s := Name + ":" + strconv.Itoa(int(p.bits))
	if p.arity != defaultArity {
		s += "," + strconv.Itoa(int(p.arity))
	}
	return s
}

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{plan: p.plan()} }

func (p Policy) plan() peel.Plan {
	return peel.Plan{Family: frame.Fuse, Bits: p.bits, Layout: func(keys uint64, growth int) peel.Layout {
		l := layoutFor(int(p.arity), keys, growth)
		return &l
	}}
}
