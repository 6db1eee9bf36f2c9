package gcs

import (
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// Expected returns the size and the false-positive rate of a filter of the given
// number of distinct keys. The size counts the footer, and is within 2 % for 1000 keys or
// more: the length of a code depends on the hashes. A filter of too many keys has
// no bits and says maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) {
	switch {
	case keys <= 0:
		return 0, 0
	case keys > maxKeys:
		return 0, 1
	}
	n := float64(keys)
	buckets, width, divisor := geometry(p.bits, uint64(keys))
	fpr = -math.Expm1(-n / (float64(buckets) * float64(width)))
	code := meanCode(fpr, divisor)
	bases, deviations := sizes(buckets+1, offsetBits(buckets, code))
	distinct := fpr * float64(buckets) * float64(width)
	return (distinct*code + 8*float64(bases+deviations+trailerLen+frame.FooterLen)) / n, fpr
}

// meanCode is the mean length of the code of a difference, which is geometric: each
// value is in the set with probability p.
func meanCode(p float64, divisor uint64) float64 {
	c, q := codeOf(divisor), math.Log1p(-p)
	period := -math.Expm1(q * float64(divisor)) // 1 - (1-p)^divisor
	long := (math.Exp(q*float64(c.short)) - math.Exp(q*float64(divisor))) / period
	return 1/period + float64(c.low) + long
}

// offsetBits estimates the bits of a deviation: the range of a random walk of 64
// steps, each the spread of a bucket's length, at its largest among all groups.
func offsetBits(buckets uint64, code float64) uint64 {
	steps := math.Min(groupLen, float64(buckets+1))
	groups := 1 + float64(buckets)/groupLen
	spread := math.Sqrt(steps*bucketKeys) * code * (1.6 + 0.5*math.Sqrt(2*math.Log(groups)))
	return uint64(math.Ceil(math.Log2(1 + spread)))
}
