package gcs

import "github.com/siftkv/siftkv/filterpolicy/internal/spec"

// Name is the family's name on disk.
const Name = "gcs"

const (
	minBits = spec.One
	maxBits = 32 * spec.One
)

// A Policy is the family with the logarithm of its rate. Policies are equal when their
// specs mean the same. The zero value is not a policy; use Parse.
type Policy struct {
	bits spec.Bits
}

// Parse reads the bits of a rate, from 1 to 32 with at most three decimals, or the
// rate: "7", "6.64", "rate=0.01". A rate means the least bits whose rate is not above it.
func Parse(args string) (Policy, error) {
	bits, err := spec.ParseBitsOrRate(args, minBits, maxBits, limit)
	return Policy{bits}, spec.Wrap(err, Name, args, "gcs:7")
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec, a rate as the bits that it stands for.
func (p Policy) String() string { return Name + ":" + p.bits.String() }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return p.NewBuilderFor(0) }

// NewBuilderFor returns an empty builder whose filters are over the range for so many
// distinct keys, however few they get. Filters for the same number of keys can be merged. A
// filter that gets more keys takes a larger range and can no longer be merged with the others.
func (p Policy) NewBuilderFor(keys int) *Builder {
	return &Builder{bits: p.bits, room: uint64(max(0, keys))}
}
