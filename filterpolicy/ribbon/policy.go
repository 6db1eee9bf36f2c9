package ribbon

import (
	"math"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

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
	p, err := parse(args)
	if err != nil {
		return Policy{}, spec.Errorf(Name+":"+args, "ribbon:7", "%v", err)
	}
	return p, nil
}

func parse(args string) (Policy, error) {
	if text, ok := strings.CutPrefix(args, "rate="); ok {
		rate, err := spec.ParseRate(text, math.Exp2(-32), 0.5)
		return Policy{bitsFor(rate)}, err
	}
	bits, err := spec.ParseBits(args, minBits, maxBits)
	return Policy{bits}, err
}

// bitsFor returns the least bits with at most the given rate, the inverse of
// rateOf: with a share s of the keys at one more than b bits, the rate is
// 2^-b (1 - s/2).
func bitsFor(rate float64) spec.Bits {
	const slack = 1e-6 // thousandths of a bit that rounding may have added
	whole := math.Floor(-math.Log2(rate))
	share := 2 - 2*rate*math.Exp2(whole)
	return min(maxBits, spec.One*spec.Bits(whole)+spec.Bits(math.Ceil(share*float64(spec.One)-slack)))
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec, a rate as the bits that it stands for.
func (p Policy) String() string { return Name + ":" + p.bits.String() }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{width: widthOf(p.bits)} }
