package fingerprint

import (
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// ParseBits reads the bits of a fingerprint: a whole number from 4 to 32, or
// "rate=" and a false-positive rate, which means the fewest bits whose rate is not
// above it.
func ParseBits(text string) (uint8, error) {
	bits, err := spec.ParseIntOrRate("fingerprint bits", text, MinBits, MaxBits,
		func(bits int) float64 { return Rate(uint8(bits)) })
	return uint8(bits), err
}

// Rate is the false-positive rate of fingerprints of so many bits.
func Rate(bits uint8) float64 { return math.Exp2(-float64(bits)) }
