package quotient

import (
	"strconv"

	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "quotient"

// Bounds of the bits of a remainder. Merges may leave fewer than a policy may ask
// for.
const (
	minBits    = 2
	mergedBits = 1
	maxBits    = 32
)

// A Policy is the family with its remainder bits. Policies are equal when their specs
// mean the same. The zero value is not a policy; use Parse.
type Policy struct {
	bits uint8
}

// Parse reads the bits of a remainder, from 2 to 32, or a false-positive rate such as
// "rate=0.01", which means the fewest bits whose rate is not above it.
func Parse(args string) (Policy, error) {
	bits, err := spec.ParseIntOrRate("remainder bits", args, minBits, maxBits, limit)
	return Policy{uint8(bits)}, spec.Wrap(err, Name, args, "quotient:7")
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec, a rate as the bits that it stands for.
func (p Policy) String() string { return Name + ":" + strconv.Itoa(int(p.bits)) }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return p.NewBuilderFor(0) }

// NewBuilderFor returns an empty builder whose filters have room for so many distinct keys,
// however few they get. Filters for the same number of keys can be merged. A filter that gets more
// keys grows and can no longer be merged with the others.
func (p Policy) NewBuilderFor(keys int) *Builder {
	return &Builder{bits: uint64(p.bits), room: uint64(max(0, keys))}
}
