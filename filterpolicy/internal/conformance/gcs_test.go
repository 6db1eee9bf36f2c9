package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/gcs"
)

// What the family is for: codes and index within 1.6 bits of the information-theoretic bound.
func TestGcsBitsAreNearTheBound(t *testing.T) {
	for _, spec := range []string{"gcs:3", "gcs:5.5", "gcs:rate=0.01", "gcs:7", "gcs:7.5", "gcs:rate=0.001", "gcs:16",
		"gcs:24"} {
		for _, n := range Affordable(10_000, 100_000, 1_000_000) {
			bound := -math.Log2(filterpolicy.Expected(Policy(t, spec), n).FPR)
			got := BitsPerKey(t, spec, Good(1), n)
			t.Logf("%s, %d keys: %.4f bits per key, %.4f above the bound", spec, n, got, got-bound)
			slack := 8 * 100 / float64(n) // numbers and footer
			require.LessOrEqual(t, got, bound+1.6+slack, "%s, %d keys", spec, n)
		}
	}
}

// The size is that of a mean filter, but for the codes' spread and a word of
// deviations; the rate is exact for small filters too.
func TestGcsTheoryOfAnySize(t *testing.T) {
	for _, spec := range []string{"gcs:1", "gcs:1.5", "gcs:4", "gcs:7", "gcs:16", "gcs:32"} {
		SizeMatchesTheory(t, spec, 0.02, 9, 1, 2, 3, 10, 60, 127, 128, 129, 300, 500, 700, 1000, 2000, 5000)
		SizeMatchesTheory(t, spec, 0.015, 0, 9000, 20_000)
	}
	for _, n := range []int{1, 2, 10, 129, 1000} {
		AverageMatchesTheory(t, "gcs:1", n, 0.04)
		AverageMatchesTheory(t, "gcs:6.644", n, 0.04)
	}
}

// A filter is the list of its keys' values.
func TestGcsAllIsTheList(t *testing.T) {
	for _, spec := range []string{"gcs:1", "gcs:7", "gcs:6.644", "gcs:32"} {
		for _, n := range []int{0, 1, 2, 3, 127, 128, 129, 5000} {
			f := ListsItsKeys(t, spec, gcs.Decode, n)
			buckets, width := f.Buckets()
			for v := range f.All() {
				require.Less(t, v, buckets*width)
			}
		}
	}
}

func TestGcsRates(t *testing.T) {
	Means(t, map[string]string{
		"gcs:07.500": "gcs:7.5", "gcs:rate=0.01": "gcs:6.644", "gcs:rate=0.5": "gcs:1", "gcs:rate=0.0078125": "gcs:7",
		"gcs:rate=0.001":                "gcs:9.966",
		"gcs:rate=0.000000000232830644": "gcs:32",
	})
	KeepsRates(t, "gcs:", "", 0.5, 0.35, 0.1, 0.01, 0.0078125, 0.001, 1e-6, 1e-9)
}

func TestGcsParseSaysWhatIsWrong(t *testing.T) {
	const rates = `rate must be a decimal fraction from 2.33e-10 to 0.5, such as 0.01, not `
	Refuses(t, gcs.Parse, map[string]string{
		"0.5": `bits per key must be a number from 1 to 32 ` +
			`with at most three decimals, not "0.5"; for example "gcs:7"`,
		"32.001":            `bits per key must be a number from 1 to 32`,
		"rate=1":            rates + `"1"; for example "gcs:7"`,
		"rate=0.0000000002": rates,
	})
}

func BenchmarkGcsVersusBlocked(b *testing.B) {
	Versus(b, "blocked:10", "gcs:7", "gcs:rate=0.01")
}
