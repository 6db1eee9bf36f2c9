package bloom

import (
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// Expected returns the size and the false-positive rate of a filter of the given
// number of distinct keys. The size is exact; it counts the footer. A filter too
// large to build has no bits and says maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) {
	size, ok := p.bits.Units(keys, cellBits)
	switch {
	case keys <= 0:
		return 0, 0
	case !ok:
		return 0, 1
	}
	n, m := float64(keys), float64(size*cellBits)
	return (m + 8*frame.FooterLen) / n, rate(n/m, probesFor(p.bits))
}

// rate is the textbook's false-positive rate for a load of so many keys per bit and
// k probes: the share of set bits, to the power of k.
func rate(load float64, k int) float64 {
	return math.Pow(-math.Expm1(-float64(k)*load), float64(k))
}
