package conformance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/fuse"
)

// The bits per key that the family promises, footer included.
func TestFuseSizeIsAsPromised(t *testing.T) {
	for _, bits := range []int{4, 11, 32} {
		for _, c := range []struct {
			places, keys int
			most         float64 // bits per key over fingerprint bits
		}{
			{3, 10_000, 1.27}, {3, 100_000, 1.18}, {3, 1_000_000, 1.13},
			{4, 10_000, 1.22}, {4, 100_000, 1.125}, {4, 1_000_000, 1.08},
		} {
			spec := fmt.Sprintf("fuse:%d,%d", bits, c.places)
			for _, n := range Affordable(c.keys) {
				got := BitsPerKey(t, spec, Good(2), n)
				require.LessOrEqual(t, got, c.most*float64(bits), "%s, %d keys", spec, n)
			}
		}
	}
}

// A rate is the fewest bits that keep it, and from then on those bits.
func TestFuseRateMeansBits(t *testing.T) {
	Means(t, map[string]string{
		"fuse:rate=0.004": "fuse:8", "fuse:rate=0.00390625": "fuse:8", "fuse:rate=0.0039": "fuse:9",
		"fuse:rate=0.01,4": "fuse:7,4",
		"fuse:rate=0.5":    "fuse:4", "fuse:rate=0.000000001": "fuse:30", "fuse:8,3": "fuse:8", "fuse:08,4": "fuse:8,4",
	})
	LeastBitsKeepRates(t, "fuse:", "", 0.5, 0.0625, 0.01, 0.004, 1e-6, 1e-9)
	LeastBitsKeepRates(t, "fuse:", ",4", 0.5, 0.01, 1e-9)
}

func TestFuseParseSaysWhatIsWrong(t *testing.T) {
	Refuses(t, fuse.Parse, map[string]string{
		"3":        `fingerprint bits must be a whole number from 4 to 32, not "3"; for example "fuse:8"`,
		"33":       `fingerprint bits must be a whole number from 4 to 32, not "33"`,
		"8.5":      `fingerprint bits must be a whole number from 4 to 32, not "8.5"`,
		"8,":       `places per key must be 3 or 4, not ""`,
		"8,2":      `places per key must be 3 or 4, not "2"`,
		"8,4,4":    `places per key must be 3 or 4, not "4,4"`,
		"rate=2":   `rate must be`,
		"rate=0.0": `rate must be`,
		"rate=":    `rate must be`,
	})
}
