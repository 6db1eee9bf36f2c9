package blocked

import "math"

// Expected returns the size and the false-positive rate of a filter of the given
// number of distinct keys. The size is exact; it counts the footer. A filter too
// large to build has no bits and says maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) { return design.Expected(p.bits, keys) }

// rate is the false-positive rate of n keys in so many lines with k probes. A line
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
