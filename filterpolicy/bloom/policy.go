package bloom

import (
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "bloom"

// Bounds of the bits per key. Below one bit no filter is worth its probe; above 64 the hash itself is the limit.
const (
	minBits = spec.One
	maxBits = 64 * spec.One
)

// maxProbes is what maxBits needs: 64 ln 2, rounded.
const maxProbes = 44

// A Policy is the family with its bits per key. Policies are equal when their specs mean the same. The zero value is
// not a policy; use Parse.
type Policy struct {
	bits spec.Bits
}

// Parse reads bits per key, from 1 to 64 with at most three decimals, or a rate: "10", "9.6", "rate=0.01". A rate means
// the least bits whose rate is not above it in filters of any size.
func Parse(args string) (Policy, error) {
	bits, err := spec.ParseBitsOrRate(args, minBits, maxBits, design.Limit)
	return Policy{bits}, spec.Wrap(err, Name, args, "bloom:10")
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec, a rate as the bits that it stands for.
func (p Policy) String() string { return Name + ":" + p.bits.String() }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{bits: p.bits} }

// probesFor returns the number of probes with the least false-positive rate: of the two whole numbers around bits times
// ln 2, the better one.
func probesFor(bits spec.Bits) int {
	k := max(1, int(bits.Float()*math.Ln2))
	if rate(1/bits.Float(), k+1) < rate(1/bits.Float(), k) {
		k++
	}
	return min(k, maxProbes)
}

// Expected returns the size and the false-positive rate of a filter of the given number of distinct keys. The size is
// exact; it counts the footer. A filter too large to build has no bits and says maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) { return design.Expected(p.bits, keys) }

// rate is the textbook's false-positive rate for a load of keys per bit and k probes: the share of set bits, to the
// power of k.
func rate(load float64, k int) float64 {
	return math.Pow(-math.Expm1(-float64(k)*load), float64(k))
}
