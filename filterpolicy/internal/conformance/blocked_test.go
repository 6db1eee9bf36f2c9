package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/blocked"
)

func TestBlockedNoFalseNegativesAmongTenMillion(t *testing.T) {
	n := Share(10_000_000)
	in := Good(7)
	f := Open(t, "blocked:10", Build(t, "blocked:10", in, n))
	missing := 0
	for i := range uint64(n) {
		if !f.MayContainHash(in.At(i)) {
			missing++
		}
	}
	require.Zero(t, missing)
}

func TestBlockedRateOfSmallFiltersIsTheories(t *testing.T) {
	for _, n := range []int{10, 52, 103, 1000} { // one line, two lines, few lines
		AverageMatchesTheory(t, "blocked:10", n, 0.06)
	}
}

// The figures that the blockedFamily promises, within three standard deviations of their
// measurement.
func TestBlockedRateIsAsPromised(t *testing.T) {
	for spec, most := range map[string]float64{"blocked:10": 0.0097, "blocked:16": 0.0010} {
		p := Policy(t, spec)
		require.LessOrEqual(t, filterpolicy.Expected(p, 1_000_000).FPR, most)
		got := Measure(t, spec, Good(3), 20*Share(50_000), 4_000_000)
		t.Logf("%s: %.4f %% ± %.4f %%", spec, 100*got.FPR(), 196*got.Sigma(most))
		require.LessOrEqual(t, got.FPR(), most+3*got.Sigma(most))
	}
}

func TestBlockedRates(t *testing.T) {
	Means(t, map[string]string{
		"blocked:010.500": "blocked:10.5", "blocked:rate=0.01": "blocked:9.918",
		"blocked:rate=0.001": "blocked:15.546", "blocked:rate=0.5": "blocked:1.443",
	})
	RatesFall(t, "blocked", 32)
	LeastBitsKeepRates(t, "blocked:", "", 0.5, 0.3, 0.1, 0.01, 0.001, 0.0001, 0.00002)
}

func TestBlockedParseSaysWhatIsWrong(t *testing.T) {
	Refuses(t, blocked.Parse, map[string]string{
		"33": `bits per key must be a number from 1 to 32 ` +
			`with at most three decimals, not "33"; for example "blocked:10"`,
		"rate=0.6": `rate must be a decimal fraction from 5.38e-06 to 0.5, such as 0.01, ` +
			`not "0.6"; for example "blocked:10"`,
		"rate=0.000001": `rate must be a decimal fraction`,
	})
}
