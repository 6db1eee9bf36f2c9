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

// A Policy is the family with its bits per key. Policies are equal when their specs
// mean the same. The zero value is not a policy; use Parse.
type Policy struct {
	bits spec.Bits
}

// Parse reads bits per key, from 1 to 32 with at most three decimals, or a rate: "10", "9.6",
// "rate=0.01". A rate means the least bits whose rate is not above it in filters of any size.
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

// Expected returns the size and the false-positive rate of a filter of the given
// number of distinct keys. The size is exact; it counts the footer. A filter too
// large to build has no bits and says maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) { return design.Expected(p.bits, keys) }

// rate is the false-positive rate of n keys in the given lines with k probes. A line
// holds j keys with binomial probability; the rate of the filter is the mean of its
// lines' rates, which is worse than the rate of a mean line.
func rate(n, lines float64, k int) float64 {
	if lines == 1 {
		return lineRate(n, k)
	}
	p, mean := 1/lines, n/lines
	most := math.Min(n, math.Ceil(mean+12*math.Sqrt(mean)+40)) // beyond it double precision sees nothing
	logP, odds := n*math.Log1p(-p), math.Log(p/(1-p))
	sum := 0.0
	for j := 1.0; j <= most; j++ {
		logP += math.Log((n-j+1)/j) + odds
		sum += math.Exp(logP) * lineRate(j, k)
	}
	return sum
}

// lineRate is the rate of one line of j keys: the mean of (X/512)^k, where X is the
// number of bits that j*k throws set. X is close to normal, so its mean and
// variance (the classical occupancy problem) give the mean of its power.
func lineRate(j float64, k int) float64 {
	const m = lineBits
	throws := j * float64(k)
	one := math.Exp(throws * math.Log1p(-1.0/m)) // one given bit stays clear
	two := math.Exp(throws * math.Log1p(-2.0/m)) // two given bits stay clear
	fill := 1 - one
	variance := math.Max(0, (one-two)/m+two-one*one) // of X/m
	pairs := float64(k*(k-1)) / 2
	return math.Pow(fill, float64(k)) * (1 + pairs*variance/(fill*fill))
}
