package blocked

import (
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "blocked"

const (
	minBits = spec.One
	maxBits = 32 * spec.One
)

// A Policy is the family with its bits per key. Policies are equal when their specs mean the same. The zero value is
// not a policy; use Parse.
type Policy struct {
	bits spec.Bits
}

// Parse reads bits per key, from 1 to 32 with at most three decimals, or a rate: "10", "9.6", "rate=0.01". A rate means
// the least bits whose rate is not above it in filters of any size.
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

// probesFrom[k-1] is the least number of bits per key at which k probes are worth their time: below it, one probe fewer
// has a rate at most 1 % higher. The simulation (simulation.md) holds these figures to account.
var probesFrom = [MaxProbes]spec.Bits{
	0, 2200, 3700, 5300, 6900, 8600, 10400, 12300, 14400, 16600, 19100, 21900, 25000, 28400,
}

func probesFor(bits spec.Bits) int {
	k := 1
	for k < MaxProbes && bits >= probesFrom[k] {
		k++
	}
	return k
}

// Expected returns the size and the false-positive rate of a filter of the given number of distinct keys. The size is
// exact; it counts the footer. A filter too large to build has no bits and says maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) { return design.Expected(p.bits, keys) }

// rate is the false-positive rate of n keys in the given lines with k probes. A line holds j keys with binomial
// probability; the rate of the filter is the mean of its lines' rates, which is worse than the rate of a mean line.
//
// Sizes are searched for, with a rate at each step, so the loop has no logarithm and no power: weights are the
// probabilities except for a factor, by which their sum divides.
func rate(n, lines float64, k int) float64 {
	clear1 := math.Exp(float64(k) * math.Log1p(-1.0/lineBits)) // one given bit stays clear for a key
	clear2 := math.Exp(float64(k) * math.Log1p(-2.0/lineBits)) // two given bits do
	if lines == 1 {
		return lineRate(math.Pow(clear1, n), math.Pow(clear2, n), k)
	}
	odds, mean := 1/(lines-1), n/lines
	most := math.Ceil(math.Min(n, mean+12*math.Sqrt(mean)+40)) // beyond it double precision sees nothing
	weight, weights, sum := 1.0, 1.0, 0.0                      // of a line without keys
	one, two := 1.0, 1.0
	for j := 1.0; j <= most; j++ {
		one *= clear1
		two *= clear2
		weight *= (n - j + 1) / j * odds
		weights += weight
		sum += weight * lineRate(one, two, k)
		if weight > 1e200 {
			weight, weights, sum = weight*1e-200, weights*1e-200, sum*1e-200
		}
	}
	return sum / weights
}

// lineRate is the rate of a line where one given bit and two given bits stay clear with these probabilities: the mean
// of (X/512)^k, where X is the number of bits that are set. X is close to normal, so its mean and variance (the
// classical occupancy problem) give the mean of its power.
func lineRate(one, two float64, k int) float64 {
	const m = lineBits
	fill := 1 - one
	if fill == 0 { // of a tiny fraction of a key
		return 0
	}
	variance := math.Max(0, (one-two)/m+two-one*one) // of X/m
	pairs := float64(k*(k-1)) / 2
	power := 1.0
	for range k {
		power *= fill
	}
	return power * (1 + pairs*variance/(fill*fill))
}
