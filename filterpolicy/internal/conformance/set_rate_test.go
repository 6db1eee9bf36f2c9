package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// Hash returns the i-th of well-mixed hashes. Different salts give disjoint
// ones, for i below 2^40.
func Hash(salt, i uint64) uint64 {
	return hash64.Mix(hash64.Mix(i^salt<<40) ^ 0x5bf0_3635_d1c1_f3a9)
}

// Absent is the salt of hashes that no test adds.
const Absent = 0xabcde

// SetRate measures the share of so many absent hashes for which contains says true,
// and returns it with the standard deviation that such a measurement has at the
// promised rate.
func SetRate(contains func(h uint64) bool, probes int, promised float64) (rate, sigma float64) {
	return rateOf(contains, func(i uint64) uint64 { return Hash(Absent, i) }, probes, promised)
}

// rateOf is SetRate for any hashes that are not there.
func rateOf(contains func(h uint64) bool, absent func(i uint64) uint64, probes int, promised float64) (rate,
	sigma float64) {
	positives := 0
	for i := range uint64(probes) {
		if contains(absent(i)) {
			positives++
		}
	}
	return float64(positives) / float64(probes), math.Sqrt(promised * (1 - promised) / float64(probes))
}

// KeepsPromise checks that the measured rate exceeds the promised one by at most four standard deviations of the
// measurement and two positives: where few are expected, their number is no normal variable.
func KeepsPromise(t *testing.T, contains func(h uint64) bool, probes int, promised float64) {
	t.Helper()
	probes = Share(probes)
	rate, sigma := SetRate(contains, probes, promised)
	require.LessOrEqual(t, rate, promised+4*sigma+2/float64(probes))
}

// KeepsPromiseOnAverage checks that the mean rate of many sets of n keys, each
// made for as many and the given rate, is at most the promised one, but for four
// standard deviations of the mean.
func KeepsPromiseOnAverage[P Set](t *testing.T, f Family[P], n, sets int, rate, promised float64) {
	t.Helper()
	const probes = 5000
	sum, squares := 0.0, 0.0
	for salt := range uint64(sets) {
		s := f.New(t, n, rate)
		for i := range uint64(n) {
			require.NoError(t, Add(s, Hash(salt, i)))
		}
		got, _ := SetRate(s.ContainsHash, probes, promised)
		sum, squares = sum+got, squares+got*got
	}
	mean := sum / float64(sets)
	sigma := math.Sqrt(max(squares/float64(sets)-mean*mean, promised/probes) / float64(sets))
	t.Logf("%d sets of %d keys: %.5f %% ± %.5f %%", sets, n, 100*mean, 100*sigma)
	require.LessOrEqual(t, mean, promised+4*sigma, "%d keys, %g", n, promised)
}

// UnmixedNumbers are numbers that no hash function has touched: the setRates of sets hold
// for them too.
var UnmixedNumbers = map[string]func(i uint64) uint64{
	"counter":       func(i uint64) uint64 { return i },
	"counter of 10": func(i uint64) uint64 { return 10 * i },
	"16 bits up":    func(i uint64) uint64 { return i << 16 },
	"32 bits up":    func(i uint64) uint64 { return i << 32 },
	"high half set": func(i uint64) uint64 { return i | 0xffffffff<<32 },
	"equal halves":  func(i uint64) uint64 { return i | i<<32 },
}
