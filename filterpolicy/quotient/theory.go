package quotient

import (
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// Expected returns the size and the false-positive rate of a filter of the given
// number of distinct keys. The size counts the footer; it is exact but for the runs that
// reach beyond the last quotient, which may take a few blocks more. A filter too large to build has
// no bits and says maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) {
	if keys <= 0 {
		return 0, 0
	}
	quotients, ok := quotientsFor(uint64(keys), uint64(p.bits))
	if !ok {
		return 0, 1
	}
	n := float64(keys)
	blocks := (quotients + blockSlots - 1) / blockSlots
	size := blocks*blockLen(uint64(p.bits)) + trailerLen + frame.FooterLen
	return 8 * float64(size) / n, -math.Expm1(-n / float64(quotients) * math.Exp2(-float64(p.bits)))
}

// limit is the false-positive rate of large filters with so many remainder bits, filled
// to the load; no smaller one's is above it, as the quotients are rounded up.
func limit(bits int) float64 { return -math.Expm1(-load / 100.0 * math.Exp2(-float64(bits))) }
