package bloom

import "math"

// Expected returns the size and the false-positive rate of a filter of the given
// number of distinct keys. The size is exact; it counts the footer. A filter too
// large to build has no bits and says maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) { return design.Expected(p.bits, keys) }

// rate is the textbook's false-positive rate for a load of so many keys per bit and
// k probes: the share of set bits, to the power of k.
func rate(load float64, k int) float64 {
	return math.Pow(-math.Expm1(-float64(k)*load), float64(k))
}
