package xor

import (
	"strconv"

	"github.com/siftkv/siftkv/filterpolicy/internal/fingerprint"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/peel"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "xor"

// A Policy is the family with its fingerprint bits. Policies are equal when their
// specs mean the same. The zero value is not a policy; use Parse.
type Policy struct {
	bits uint8
}

// Parse reads fingerprint bits, from 4 to 32, or a false-positive rate such as
// "rate=0.004", which means the fewest bits whose rate is not above it.
func Parse(args string) (Policy, error) {
	bits, err := fingerprint.ParseBits(args)
	return Policy{bits}, spec.Wrap(err, Name, args, "xor:8")
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec, a rate as the bits that it stands for.
func (p Policy) String() string { return Name + ":" + strconv.Itoa(int(p.bits)) }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{plan: p.plan()} }

func (p Policy) plan() peel.Plan {
	return peel.Plan{Family: frame.Xor, Bits: p.bits, Layout: func(keys uint64, growth int) peel.Layout {
		l := layoutFor(keys, growth)
		return &l
	}}
}
