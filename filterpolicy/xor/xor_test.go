package xor_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
	"github.com/siftkv/siftkv/filterpolicy/xor"
)

func TestSuite(t *testing.T) {
	filtertest.Suite(t, "xor:8", 300_000)
	for _, spec := range []string{"xor:4", "xor:7", "xor:9", "xor:16", "xor:17", "xor:31", "xor:32"} {
		filtertest.Suite(t, spec, 5000)
	}
}

func TestGolden(t *testing.T) {
	filtertest.Golden(t, "xor:8", "xor:4", "xor:7", "xor:9", "xor:16", "xor:17", "xor:31", "xor:32")
}

func TestRateIsTheories(t *testing.T) {
	filtertest.MatchesTheory(t, "xor:8", 1_000_000, 4_000_000)
	for _, spec := range []string{"xor:4", "xor:5", "xor:7", "xor:9", "xor:10", "xor:12", "xor:16"} {
		filtertest.MatchesTheory(t, spec, 50_000, 1_000_000)
	}
}

// 1.23 F bits per key, and a constant: 35 cells, padding and footer.
func TestSizeIsAsPromised(t *testing.T) {
	for _, bits := range []int{4, 11, 32} {
		for _, n := range filtertest.Affordable(1, 100, 10_000, 100_000, 1_000_000) {
			spec := fmt.Sprintf("xor:%d", bits)
			got := 8 * len(filtertest.Build(t, spec, filtertest.Good(2), n))
			require.LessOrEqual(t, float64(got), 1.23*float64(bits*n)+float64(35*bits+40*8), "%s, %d keys", spec, n)
		}
	}
}

func TestUnmixedHashesDoNoHarm(t *testing.T) {
	filtertest.MixesInput(t, "xor:8", 1000, 200_000, 0.1)
	filtertest.MixesInput(t, "xor:9", 100_000, 200_000, 0.05)
}

// A rate is the fewest bits that keep it, and from then on those bits.
func TestRateMeansBits(t *testing.T) {
	filtertest.Means(t, map[string]string{
		"xor:rate=0.004": "xor:8", "xor:rate=0.00390625": "xor:8", "xor:rate=0.0039": "xor:9",
		"xor:rate=0.5": "xor:4", "xor:08": "xor:8",
	})
	filtertest.LeastBitsKeepRates(t, "xor:", "", 0.5, 0.0625, 0.01, 0.004, 1e-6, 1e-9)
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	filtertest.Refuses(t, xor.Parse, map[string]string{
		"3":      `fingerprint bits must be a whole number from 4 to 32, not "3"; for example "xor:8"`,
		"33":     `fingerprint bits must be a whole number from 4 to 32, not "33"`,
		"8,4":    `fingerprint bits must be a whole number from 4 to 32, not "8,4"`,
		"rate=2": `rate must be`,
	})
}

func TestDuplicatesCostNothing(t *testing.T) { filtertest.DuplicatesAreFree(t, "xor:8", 0) }

func TestHostileFilters(t *testing.T) { filtertest.Bounded(t, "xor:8", "xor:9", "xor:16", "xor:32") }

func FuzzDecode(f *testing.F) { filtertest.FuzzDecode(f, "xor:8", "xor:9", "xor:16", "xor:32") }
