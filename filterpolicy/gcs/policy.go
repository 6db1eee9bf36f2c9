package gcs

import (
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

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

// Parse reads the bits of a rate, from 1 to 32 with at most three decimals, or the rate:
// "7", "6.64", "rate=0.01". A rate means the least bits with a rate that is not above it.
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

// NewBuilderFor returns an empty builder of filters over the range for the given number of distinct
// keys, even if they get fewer. Filters for the same number of keys can be merged. A filter that
// gets more keys takes a larger range and can no longer be merged with the others.
func (p Policy) NewBuilderFor(keys int) *Builder {
	return &Builder{bits: p.bits, room: uint64(max(0, keys))}
}

// Expected returns the size and the false-positive rate of a filter of the given number of distinct keys. The rate is
// exact. The size counts the footer and is that of a mean filter. The codes' length and the bits of a deviation depend
// on the hashes, which changes it by some per cent below 1000 keys and by less than one above. A filter of too many
// keys has no bits and says maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) {
	switch {
	case keys <= 0:
		return 0, 0
	case keys > maxKeys:
		return 0, 1
	}
	n := float64(keys)
	g := geometryOf(p.bits, uint64(keys))
	values := float64(g.buckets) * float64(g.width)
	fpr = -math.Expm1(n * math.Log1p(-1/values)) // the share of values that some key has
	code := meanCode(fpr, g.divisor)
	bases, deviations := sizes(g.buckets+1, offsetBits(g.buckets, float64(g.width)*fpr, fpr, code, float64(g.divisor)))
	const unused = 3.5 // bits of the codes' last byte
	return (fpr*values*code + unused + 8*float64(bases+deviations+trailerLen+frame.FooterLen)) / n, fpr
}

// limit is a false-positive rate that no filter's is above, 2^-b: keys have
// at least as many values to choose from as the range per key promises.
func limit(b spec.Bits) float64 { return (1 << fixed) / float64(valuesPerKey(b)) }

// meanCode is the mean length of the code of a difference, which is geometric: each
// value is in the set with probability p.
func meanCode(p float64, divisor uint64) float64 {
	c, q := codeOf(divisor), math.Log1p(-p)
	period := -math.Expm1(q * float64(divisor)) // 1 - (1-p)^divisor
	long := (math.Exp(q*float64(c.short)) - math.Exp(q*float64(divisor))) / period
	return 1/period + float64(c.low) + long
}

// offsetBits estimates the bits of a deviation: the range of a random walk of 64 steps, or of a bridge if there are
// fewer, at its largest among all groups. A step is the deviation of a bucket's length from its mean. One more value in
// a bucket makes it longer by a code, but the gaps between all of them shorter, which saves zeros.
func offsetBits(buckets uint64, perBucket, p, code, divisor float64) uint64 {
	if buckets == 1 {
		return 0
	}
	const rounding = 0.2 // variance of a code that is not due to the number of values
	longer := code - 1/(p*divisor)
	step := math.Sqrt(perBucket * ((1-p)*longer*longer + rounding))
	if buckets < groupLen {
		return bitsOf(step * 1.25 * math.Sqrt(float64(buckets)))
	}
	groups := float64(buckets) / groupLen
	return bitsOf(step * (1.6 + 0.5*math.Sqrt(2*math.Log(groups))) * math.Sqrt(groupLen))
}

// bitsOf returns the bits of the numbers up to x.
func bitsOf(x float64) uint64 { return uint64(math.Ceil(math.Log2(1 + x))) }
