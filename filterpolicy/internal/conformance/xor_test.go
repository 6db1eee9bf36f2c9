package conformance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/xor"
)

// 1.23 F bits per key, and a constant: 35 cells, padding and footer.
func TestXorSizeIsAsPromised(t *testing.T) {
	for _, bits := range []int{4, 11, 32} {
		for _, n := range Affordable(1, 100, 10_000, 100_000, 1_000_000) {
			spec := fmt.Sprintf("xor:%d", bits)
			got := 8 * len(Build(t, spec, Good(2), n))
			require.LessOrEqual(t, float64(got), 1.23*float64(bits*n)+float64(35*bits+40*8), "%s, %d keys", spec, n)
		}
	}
}

// A rate is the fewest bits that keep it, and from then on those bits.
func TestXorRateMeansBits(t *testing.T) {
	Means(t, map[string]string{
		"xor:rate=0.004": "xor:8", "xor:rate=0.00390625": "xor:8", "xor:rate=0.0039": "xor:9",
		"xor:rate=0.5": "xor:4", "xor:08": "xor:8",
	})
	LeastBitsKeepRates(t, "xor:", "", 0.5, 0.0625, 0.01, 0.004, 1e-6, 1e-9)
}

func TestXorParseSaysWhatIsWrong(t *testing.T) {
	Refuses(t, xor.Parse, map[string]string{
		"3":      `fingerprint bits must be a whole number from 4 to 32, not "3"; for example "xor:8"`,
		"33":     `fingerprint bits must be a whole number from 4 to 32, not "33"`,
		"8,4":    `fingerprint bits must be a whole number from 4 to 32, not "8,4"`,
		"rate=2": `rate must be`,
	})
}
