package filtertest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
)

// Rate is a measured false-positive rate.
type Rate struct {
	Probes, Positives int
}

// FPR returns the rate.
func (r Rate) FPR() float64 { return float64(r.Positives) / float64(r.Probes) }

// Sigma returns the standard deviation of FPR if p is the true rate.
func (r Rate) Sigma(p float64) float64 { return math.Sqrt(p * (1 - p) / float64(r.Probes)) }

// Measure builds a filter of n keys of an input and probes it with the numbers that
// follow them: as many as given, fewer under the race detector.
func Measure(tb testing.TB, spec string, in Input, n, probes int) Rate {
	tb.Helper()
	f := Open(tb, spec, Build(tb, spec, in, n))
	r := Rate{Probes: Share(probes)}
	for i := range uint64(r.Probes) {
		if f.MayContainHash(in.At(uint64(n) + i)) {
			r.Positives++
		}
	}
	return r
}

// MatchesTheory checks size and false-positive rate of a filter of n keys against
// filterpolicy.Expected: the size exactly, the rate within 3 % and four standard
// deviations of the measurement.
func MatchesTheory(t *testing.T, spec string, n, probes int) {
	t.Helper()
	want := filterpolicy.Expected(Policy(t, spec), n)
	require.True(t, want.OK)
	require.InEpsilon(t, want.BitsPerKey, float64(8*len(Build(t, spec, Good(1), n)))/float64(n), 1e-9)

	got := Measure(t, spec, Good(1), n, probes)
	t.Logf("%s, %d keys: %.3f bits per key, %.4f %% false positives; theory %.4f %%",
		spec, n, want.BitsPerKey, 100*got.FPR(), 100*want.FPR)
	require.InDelta(t, want.FPR, got.FPR(), 0.03*want.FPR+4*got.Sigma(want.FPR), spec)
}

// MixesInput checks that hashes which nobody mixed make no filter worse than it is
// with good ones, but for the given share, which small filters need as they differ
// by chance. It may be better: a counter can be spread more evenly than chance.
func MixesInput(t *testing.T, spec string, n, probes int, share float64) {
	t.Helper()
	want := filterpolicy.Expected(Policy(t, spec), n).FPR
	for _, in := range Unmixed {
		got := Measure(t, spec, in, n, probes)
		require.LessOrEqual(t, got.FPR(), (1+share)*want+4*got.Sigma(want), "%s with %d keys of %q", spec, n, in.Name)
	}
}
