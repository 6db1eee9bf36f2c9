// Package sizing computes the shape of a Bloom filter from a number of keys, and bits for each or a
// false-positive rate.
package sizing

import (
	"fmt"
	"math"
)

// Bounds of arguments. Fewer false positives than MinRate need more probes than MaxProbes, and a
// filter whose rate is near one is not worth its probe.
const (
	MaxKeys = 1 << 40
	MinRate = 1e-12
	MaxRate = 0.9

	MaxProbes = 44
)

// Check returns an error for the user if n or rate is out of bounds. Rates of less than least may not be asked for.
func Check(n int, rate, least float64) error {
	if n < 1 || uint64(n) > MaxKeys {
		return fmt.Errorf("filterpolicy: capacity must be from 1 to %d keys, not %d", uint64(MaxKeys), n)
	}
	if !(rate >= least && rate <= MaxRate) { // so that NaN is refused
		return fmt.Errorf("filterpolicy: false-positive rate must be from %g to %g, not %g; for 1 %%, give 0.01",
			least, MaxRate, rate)
	}
	return nil
}

// Fits returns an error for the user if a slice cannot have that many bytes on this machine.
func Fits(size uint64) error {
	if size > math.MaxInt {
		return fmt.Errorf("filterpolicy: a filter of %d bytes does not fit the address space; "+
			"ask for fewer keys or a higher rate", size)
	}
	return nil
}

// wordBits is what the bits of a filter are rounded up to.
const wordBits = 64

// Bits returns the least number of bits, a multiple of 64, and the number of probes that keep a Bloom filter's rate at
// or below the given one when it holds n keys. n and rate are within the bounds of Check.
func Bits(n int, rate float64) (m uint64, probes int) {
	m, probes = math.MaxUint64, 0
	for k := range candidates(rate) {
		if bits := bitsFor(float64(n), rate, k); bits < m {
			m, probes = bits, k
		}
	}
	return m, probes
}

// bitsFor takes the textbook's m for large filters, where the share of set bits is its mean. In
// small ones it varies, and the mean of its k-th power is more than the power of its mean, so a few
// words are added until the exact rate fits.
func bitsFor(n, rate float64, k int) uint64 {
	textbook := -float64(k) * n / math.Log1p(-math.Pow(rate, 1/float64(k)))
	m := uint64(math.Ceil(textbook/wordBits)) * wordBits
	m = max(m, wordBits)
	for rateOf(n, float64(m), k) > rate {
		m += wordBits
	}
	return m
}

// rateOf returns the false-positive rate of a Bloom filter with n keys, m bits and k probes: the mean of (X/m)^k, where
// X is the number of bits that n*k throws set. X is close to normal, so its mean and variance (the classical occupancy
// problem) give the mean of its power; P. Bose et al., "On the False-Positive Rate of Bloom Filters", 2008, show that
// the textbook's formula is too good for small filters.
func rateOf(n, m float64, k int) float64 {
	if n == 0 {
		return 0
	}
	throws := n * float64(k)
	logOne := throws * math.Log1p(-1/m)
	fill := -math.Expm1(logOne)
	clear := math.Exp(logOne) // one given bit stays clear
	// Two given bits stay clear with probability two; two - clear² is taken as a
	// product, for it is all that is left of the two in a large filter.
	two := math.Exp(throws * math.Log1p(-2/m))
	covariance := clear * clear * math.Expm1(throws*math.Log1p(-1/((m-1)*(m-1))))
	variance := math.Max(0, (clear-two)/m+covariance)
	pairs := float64(k*(k-1)) / 2
	return math.Pow(fill, float64(k)) * (1 + pairs*variance/(fill*fill))
}

// Slice returns the number of cells of each of k slices, and k, for a partitioned Bloom filter of n keys with at most
// the given rate. In such a filter, probe i of a key falls into slice i. The slices are filled independently, so the
// mean rate is (1 - (1 - 1/cells)^n)^k exactly, in small filters too.
func Slice(n int, rate float64) (cells uint64, probes int) {
	best := math.Inf(1)
	for k := range candidates(rate) {
		fill := math.Pow(rate, 1/float64(k))
		size := math.Ceil(-1 / math.Expm1(math.Log1p(-fill)/float64(n)))
		if total := size * float64(k); total < best {
			best, cells, probes = total, uint64(size), k
		}
	}
	return cells, probes
}

// candidates yields the whole numbers of probes around log2(1/rate), which is best if it is whole.
func candidates(rate float64) func(yield func(k int) bool) {
	return func(yield func(k int) bool) {
		k := int(-math.Log2(rate))
		_ = yield(max(1, min(k, MaxProbes))) && yield(max(1, min(k+1, MaxProbes)))
	}
}
