package blocked

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "blocked"

const (
	minBits = spec.One
	maxBits = 32 * spec.One
)

// A Policy is the family with its bits per key. Policies are equal when their specs
// mean the same. The zero value is not a policy; use Parse.
type Policy struct {
	bits spec.Bits
}

// Parse reads bits per key, from 1 to 32 with at most three decimals, or a
// rate: "10", "9.6", "rate=0.01". A rate means the least bits whose rate is not above
// it in filters of any size.
func Parse(args string) (Policy, error) {
	bits, err := spec.ParseBitsOrRate(args, minBits, maxBits, design.Limit)
	return Policy{bits}, spec.Wrap(err, Name, args, "blocked:10")
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec, a rate as the bits that it stands for.
func (p Policy) String() string { return Name + ":" + p.bits.String() }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{bits: p.bits} }

// probesFrom[k-1] is the least number of bits per key at which k probes are worth
// their time: below it, one probe fewer has a rate at most 1 % higher. The
// simulation (simulation.md) holds these figures to account.
var probesFrom = [maxProbes]spec.Bits{
	0, 2200, 3700, 5300, 6900, 8600, 10400, 12300, 14400, 16600, 19100, 21900, 25000, 28400,
}

func probesFor(bits spec.Bits) int {
	k := 1
	for k < maxProbes && bits >= probesFrom[k] {
		k++
	}
	return k
}
