package cuckoo

import (
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// Expected returns the size and the false-positive rate of a filter of the given
// number of distinct keys. The size counts the footer; it is exact unless the first
// attempt at building fails. A filter too large to build has no bits and says maybe
// to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) {
	if keys <= 0 {
		return 0, 0
	}
	plain := p.plain()
	buckets, ok := plain.bucketsFor(uint64(keys))
	if !ok {
		return 0, 1
	}
	n := float64(keys)
	size := plain.shape().size(buckets)
	if s := p.sorting(); s != nil {
		size = s.size(buckets)
	}
	return 8 * float64(size+frame.FooterLen) / n, -math.Expm1(-plain.chance(buckets) * n)
}

// bucketsFor returns the number of buckets, an even one, that n distinct keys fill
// to the safe load; false if the table would not fit the address space.
func (p Policy) bucketsFor(n uint64) (buckets uint64, ok bool) {
	const most = 1 << 44 // far above memory, far below overflow
	if n > most {
		return 0, false
	}
	perPair := 2 * uint64(p.slots) * safeLoad(int(p.slots)) // hundredths of a key
	buckets = 2 * max(1, (100*n+perPair-1)/perPair)
	size := p.shape().size(buckets)
	return buckets, size == uint64(int(size)) && int(size) >= 0
}

// chance is the probability that a probe finds one given stored fingerprint: it
// reads two buckets and looks for one of 2^F-1 values.
//
// A bucket holds no value twice, nor does its partner for that value, so with s
// fingerprints stored a probe says maybe with probability c*s exactly. A new key is
// stored unless the probe for it says maybe; so n distinct keys leave
//
//	s = (1 - exp(-c n)) / c
//
// fingerprints and a false-positive rate of 1 - exp(-c n), which is the 1 - (1 -
// 1/(2^F-1))^(2 B load) of the literature.
func (p Policy) chance(buckets uint64) float64 {
	return 2 / (float64(buckets) * (math.Exp2(float64(p.bits)) - 1))
}

// limit is the false-positive rate of large tables with so many fingerprint bits and
// slots per bucket, filled to the safe load. No smaller table's is above it, as the
// buckets are rounded up.
func limit(bits, slots int) float64 {
	perBucket := float64(slots) * float64(safeLoad(slots)) / 100
	return -math.Expm1(-2 * perBucket / (math.Exp2(float64(bits)) - 1))
}

// distinct estimates how many of n hashes were distinct, given the fingerprints
// that they left.
func (p Policy) distinct(n, stored, buckets uint64) uint64 {
	c := p.chance(buckets)
	full := min(1, c*float64(stored)) // 1: the table says maybe to everything
	return uint64(min(float64(n), math.Ceil(-math.Log1p(-full)/c)))
}
