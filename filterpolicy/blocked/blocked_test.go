package blocked_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
)

func TestSuite(t *testing.T) {
	filtertest.Suite(t, "blocked:10", 1_000_000)
	for _, spec := range []string{"blocked:1", "blocked:4", "blocked:9.6", "blocked:16", "blocked:24", "blocked:32"} {
		filtertest.Suite(t, spec, 10_000)
	}
}

func TestGolden(t *testing.T) {
	filtertest.Golden(t, "blocked:10", "blocked:1", "blocked:4", "blocked:9.6", "blocked:16", "blocked:24", "blocked:32")
}

func TestNoFalseNegativesAmongTenMillion(t *testing.T) {
	n := filtertest.Share(10_000_000)
	in := filtertest.Good(7)
	f := filtertest.Open(t, "blocked:10", filtertest.Build(t, "blocked:10", in, n))
	missing := 0
	for i := range uint64(n) {
		if !f.MayContainHash(in.At(i)) {
			missing++
		}
	}
	require.Zero(t, missing)
}

func TestRateIsTheories(t *testing.T) {
	filtertest.MatchesTheory(t, "blocked:10", 1_000_000, 4_000_000)
	for _, spec := range []string{"blocked:1", "blocked:2.5", "blocked:4", "blocked:6", "blocked:8", "blocked:9.6", "blocked:12", "blocked:14", "blocked:16"} {
		filtertest.MatchesTheory(t, spec, 300_000, 1_000_000)
	}
	for _, n := range []int{10, 52, 103, 1000} { // one line, two lines, few lines
		averageMatchesTheory(t, "blocked:10", n)
	}
}

// averageMatchesTheory compares the mean rate of many small filters with theory.
func averageMatchesTheory(t *testing.T, spec string, n int) {
	t.Helper()
	filters, probes := uint64(filtertest.Share(200)), 20_000
	var all filtertest.Rate
	for salt := range filters {
		r := filtertest.Measure(t, spec, filtertest.Good(100+salt), n, probes)
		all.Probes += r.Probes
		all.Positives += r.Positives
	}
	want := filterpolicy.Expected(filtertest.Policy(t, spec), n).FPR
	require.InDelta(t, want, all.FPR(), 0.06*want+6*all.Sigma(want), "%d keys", n)
}

// The figures that the family promises, within three standard deviations of their
// measurement.
func TestRateIsAsPromised(t *testing.T) {
	for spec, most := range map[string]float64{"blocked:10": 0.0097, "blocked:16": 0.0010} {
		p := filtertest.Policy(t, spec)
		require.LessOrEqual(t, filterpolicy.Expected(p, 1_000_000).FPR, most)
		got := filtertest.Measure(t, spec, filtertest.Good(3), 1_000_000, 4_000_000)
		t.Logf("%s: %.4f %% ± %.4f %%", spec, 100*got.FPR(), 196*got.Sigma(most))
		require.LessOrEqual(t, got.FPR(), most+3*got.Sigma(most))
	}
}

func TestUnmixedHashesDoNoHarm(t *testing.T) {
	for _, spec := range []string{"blocked:10", "blocked:16"} {
		filtertest.MixesInput(t, spec, 1000, 200_000, 0.5)
		filtertest.MixesInput(t, spec, 100_000, 200_000, 0.05)
	}
}

func TestParseAloneMatchesTheSentinel(t *testing.T) {
	_, err := blocked.Parse("33")
	require.ErrorIs(t, err, filterpolicy.ErrBadSpec)
	require.EqualError(t, err, `filterpolicy: bad spec "blocked:33": bits per key must be a number from 1 to 32 with at most three decimals, not "33"; for example "blocked:10"`)
}

func FuzzDecode(f *testing.F) { filtertest.FuzzDecode(f, "blocked:10", "blocked:1", "blocked:32") }
