package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/ribbon"
)

// What the family is for: at most 2 % above the information-theoretic bound at the
// rate that it has.
func TestRibbonBitsAreNearTheBound(t *testing.T) {
	for _, c := range []struct {
		spec string
		n    int
		most float64
	}{
		{"ribbon:7", 10_000, 1.03},
		{"ribbon:7", 100_000, 1.01},
		{"ribbon:7", 1_000_000, 1.006},
		{"ribbon:rate=0.01", 10_000, 1.05},
		{"ribbon:rate=0.01", 100_000, 1.02},
		{"ribbon:rate=0.01", 1_000_000, 1.018},
		{"ribbon:10", 1_000_000, 1.006},
	} {
		for _, n := range Affordable(c.n) {
			bound := -math.Log2(filterpolicy.Expected(Policy(t, c.spec), n).FPR)
			got := BitsPerKey(t, c.spec, Good(1), n)
			t.Logf("%s, %d keys: %.4f bits per key, %.4f times the bound", c.spec, n, got, got/bound)
			require.LessOrEqual(t, got, c.most*bound, "%s, %d keys", c.spec, n)
		}
	}
}

// The size is exact while there is one layer, and then within two blocks until these are
// half a per cent; the rate is exact where all blocks have as many columns.
func TestRibbonTheoryOfAnySize(t *testing.T) {
	for spec, block := range map[string]float64{"ribbon:1": 8 * 1, "ribbon:1.5": 8 * 2, "ribbon:6.72": 8 * 7,
		"ribbon:7": 8 * 7, "ribbon:32": 8 * 32} {
		SizeMatchesTheory(t, spec, 0, 0, 1, 2, 3, 10, 60, 127, 128, 129, 300, 499, 500)
		SizeMatchesTheory(t, spec, 0.005, 2*(block+8), 501, 700, 1000, 1500, 2000, 5000, 9000, 9500,
			10_000, 10_500, 20_000)
	}
	for _, n := range []int{1, 60, 300, 500} {
		AverageMatchesTheory(t, "ribbon:3", n, 0)
		AverageMatchesTheory(t, "ribbon:3.5", n, 0)
	}
	for _, n := range []int{501, 700, 1000, 2000, 5000} {
		AverageMatchesTheory(t, "ribbon:3", n, 0)
		AverageMatchesTheory(t, "ribbon:3.5", n, 0.01)
	}
}

// A layer is smaller than its keys are many, at any number of keys: nothing depends on
// powers of two, and no size needs many attempts.
func TestRibbonAnySizeBuilds(t *testing.T) {
	for n := 2; n < 2*Share(20_000); n += 1 + n/7 {
		got := BitsPerKey(t, "ribbon:8", Good(1), n)
		require.LessOrEqual(t, got, 8*1.005+8*float64(350)/float64(n)+10*64*8/float64(n), "%d keys", n)
	}
}

func TestRibbonRates(t *testing.T) {
	Means(t, map[string]string{
		"ribbon:06.720": "ribbon:6.72", "ribbon:rate=0.01": "ribbon:6.72", "ribbon:rate=0.5": "ribbon:1",
		"ribbon:rate=0.0078125": "ribbon:7",
		"ribbon:rate=0.001":     "ribbon:9.976", "ribbon:rate=0.000000000232830644": "ribbon:32",
	})
	LeastBitsKeepRates(t, "ribbon:", "", 0.5, 0.3, 0.1, 0.01, 0.0078125, 0.001, 1e-6, 1e-9)
}

func TestRibbonParseSaysWhatIsWrong(t *testing.T) {
	const rates = `rate must be a decimal fraction from 2.33e-10 to 0.5, such as 0.01, not `
	Refuses(t, ribbon.Parse, map[string]string{
		"33": `bits per key must be a number from 1 to 32 ` +
			`with at most three decimals, not "33"; for example "ribbon:7"`,
		"rate=0.6":          rates + `"0.6"; for example "ribbon:7"`,
		"rate=0.0000000002": rates,
	})
}
