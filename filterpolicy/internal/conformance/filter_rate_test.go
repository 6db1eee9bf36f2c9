package conformance

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
// follow them: with `probes` numbers in long tests, with a share of them in quick ones.
func Measure(tb testing.TB, spec string, in Input, n, probes int) Rate {
	tb.Helper()
	return measure(Open(tb, spec, Build(tb, spec, in, n)), in, n, probes)
}

func measure(f filterpolicy.Filter, in Input, n, probes int) Rate {
	r := Rate{Probes: Share(probes)}
	for i := range uint64(r.Probes) {
		if f.MayContainHash(in.At(uint64(n) + i)) {
			r.Positives++
		}
	}
	return r
}

// MatchesTheory checks size and false-positive rate of a filter of n keys against
// filterpolicy.Expected: the size within a share of itself, the rate within a share and four
// standard deviations of the measurement. Only long tests have more than a hundred thousand keys.
func MatchesTheory(t *testing.T, spec string, n, probes int, size, rate float64) {
	t.Helper()
	n = min(n, mostKeys())
	want, data := filterpolicy.Expected(Policy(t, spec), n), Build(t, spec, Good(1), n)
	bits := 8 * float64(len(data)) / float64(n)
	require.True(t, want.OK)
	require.InEpsilon(t, want.BitsPerKey, bits, size, "bits per key of %s, %d keys", spec, n)

	got := measure(Open(t, spec, data), Good(1), n, probes)
	t.Logf("%s, %d keys: %.3f bits per key, theory %.3f; %.4f %% false positives, theory %.4f %%",
		spec, n, bits, want.BitsPerKey, 100*got.FPR(), 100*want.FPR)
	require.InDelta(t, want.FPR, got.FPR(), rate*want.FPR+4*got.Sigma(want.FPR), "%s, %d keys", spec, n)
}

// AverageMatchesTheory compares the mean rate of many small filters, each of which may
// be better or worse, with theory: within a share and six standard deviations.
func AverageMatchesTheory(t *testing.T, spec string, n int, share float64) {
	t.Helper()
	filters, probes := uint64(max(10, Share(200))), 5000
	var all Rate
	for salt := range filters {
		r := Measure(t, spec, Good(100+salt), n, probes)
		all.Probes += r.Probes
		all.Positives += r.Positives
	}
	want := filterpolicy.Expected(Policy(t, spec), n).FPR
	require.InDelta(t, want, all.FPR(), share*want+6*all.Sigma(want), "%s, %d keys", spec, n)
}

// SizeMatchesTheory checks the size of filters of some numbers of keys within a share
// and some bytes.
func SizeMatchesTheory(t *testing.T, spec string, share, bytes float64, sizes ...int) {
	t.Helper()
	for _, n := range Affordable(sizes...) {
		want := filterpolicy.Expected(Policy(t, spec), n).BitsPerKey * float64(n) / 8
		for salt := range uint64(5) {
			got := len(Build(t, spec, Good(100+salt), n))
			require.InDelta(t, want, got, share*want+bytes+1e-6, "bytes of %s, %d keys", spec, n)
		}
	}
}

// MixesInput checks that hashes which nobody mixed make no filter worse than it is
// with good ones, but for the given share, which small filters need as they differ
// by chance. It may be better: a counter can be spread more evenly than chance.
func MixesInput(t *testing.T, spec string, n, probes int, share float64) {
	t.Helper()
	n = min(n, mostKeys()/5)
	want := filterpolicy.Expected(Policy(t, spec), n).FPR
	for _, in := range Unmixed {
		got := Measure(t, spec, in, n, probes)
		require.LessOrEqual(t, got.FPR(), (1+share)*want+4*got.Sigma(want), "%s with %d keys of %q", spec, n, in.Name)
	}
}
