package gcs

import (
	"math"
	"strings"

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

// Parse reads the bits of a rate, from 1 to 32 with at most three decimals, or the
// rate: "7", "6.64", "rate=0.01". A rate means the least bits whose rate is not above it.
func Parse(args string) (Policy, error) {
	p, err := parse(args)
	if err != nil {
		return Policy{}, spec.Errorf(Name+":"+args, "gcs:7", "%v", err)
	}
	return p, nil
}

func parse(args string) (Policy, error) {
	if text, ok := strings.CutPrefix(args, "rate="); ok {
		rate, err := spec.ParseRate(text, math.Exp2(-32), 0.5)
		if err != nil {
			return Policy{}, err
		}
		const slack = 1e-6 // thousandths of a bit that rounding may have added
		thousandths := math.Ceil(-math.Log2(rate)*float64(spec.One) - slack)
		return Policy{min(maxBits, spec.Bits(thousandths))}, nil
	}
	bits, err := spec.ParseBits(args, minBits, maxBits)
	return Policy{bits}, err
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec, a rate as the bits that it stands for.
func (p Policy) String() string { return Name + ":" + p.bits.String() }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{bits: p.bits} }
