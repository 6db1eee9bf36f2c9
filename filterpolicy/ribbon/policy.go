package ribbon

import "github.com/siftkv/siftkv/filterpolicy/internal/spec"

// Name is the family's name on disk.
const Name = "ribbon"

const (
	minBits = spec.One
	maxBits = 32 * spec.One
)

// A Policy is the family with its result bits. Policies are equal when their
// specs mean the same. The zero value is not a policy; use Parse.
type Policy struct {
	bits spec.Bits
}

// Parse reads result bits, from 1 to 32 with at most three decimals, or a rate:
// "7", "6.72", "rate=0.01". A rate means the least bits whose rate is not above it.
func Parse(args string) (Policy, error) {
	bits, err := spec.ParseBitsOrRate(args, minBits, maxBits, limit)
	return Policy{bits}, spec.Wrap(err, Name, args, "ribbon:7")
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec, a rate as the bits that it stands for.
func (p Policy) String() string { return Name + ":" + p.bits.String() }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{width: widthOf(p.bits)} }
