package fingerprint

import (
	"math"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// ParseBits reads the bits of a fingerprint: a whole number from 4 to 32, or
// "rate=" and a false-positive rate, which means the fewest bits whose rate is not
// above it.
func ParseBits(text string) (uint8, error) {
	if text, ok := strings.CutPrefix(text, "rate="); ok {
		rate, err := spec.ParseRate(text, math.Exp2(-MaxBits), 0.5)
		if err != nil {
			return 0, err
		}
		return bitsFor(rate), nil
	}
	bits, err := spec.ParseInt("fingerprint bits", text, MinBits, MaxBits)
	return uint8(bits), err
}

// bitsFor returns the fewest bits whose rate is at most the given one.
func bitsFor(rate float64) uint8 {
	bits := uint8(MinBits)
	for bits < MaxBits && Rate(bits) > rate {
		bits++
	}
	return bits
}

// Rate is the false-positive rate of fingerprints of so many bits.
func Rate(bits uint8) float64 { return math.Exp2(-float64(bits)) }
