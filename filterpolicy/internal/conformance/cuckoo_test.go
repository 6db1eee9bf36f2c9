package conformance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
)

// A table fills to its safe load whatever its size: bits per key do not jump at
// powers of two.
func TestCuckooAnySizeFills(t *testing.T) {
	for n := 10_000; n < 20_000; n += 777 {
		bits := 8 * float64(len(Build(t, "cuckoo:12", Good(1), n))) / float64(n)
		require.InDelta(t, 12/0.95, bits, 0.05, "%d keys", n)
	}
}

// A rate is the fewest bits that keep it with the slots at hand, and from then on those
// bits.
func TestCuckooRates(t *testing.T) {
	Means(t, map[string]string{
		"cuckoo:012,4": "cuckoo:12", "cuckoo:rate=0.001": "cuckoo:13", "cuckoo:rate=0.002": "cuckoo:12",
		"cuckoo:rate=0.001,4": "cuckoo:13",
		"cuckoo:rate=0.001,2": "cuckoo:12,2", "cuckoo:rate=0.001,8": "cuckoo:14,8",
		"cuckoo:rate=0.001,4,semisort": "cuckoo:13,4,semisort",
		"cuckoo:rate=0.5":              "cuckoo:4", "cuckoo:rate=0.5,8": "cuckoo:5,8",
		"cuckoo:rate=0.5,4,semisort": "cuckoo:5,4,semisort",
	})
	for _, slots := range []string{"", ",2", ",8", ",4,semisort"} {
		LeastBitsKeepRates(t, "cuckoo:", slots, 0.5, 0.1, 0.01, 0.001, 1e-6, 1e-8)
	}
}

func TestCuckooParseSaysWhatIsWrong(t *testing.T) {
	const rates = `rate must be a decimal fraction from %s to 0.5, such as 0.01, not `
	Refuses(t, cuckoo.Parse, map[string]string{
		"12,3":                `slots per bucket must be 2, 4 or 8, not "3"; for example "cuckoo:12,4"`,
		"rate=1":              fmt.Sprintf(rates, "1.77e-09") + `"1"; for example "cuckoo:12,4"`,
		"rate=0.0000000007,2": fmt.Sprintf(rates, "7.83e-10"),
		"rate=0.6,8":          fmt.Sprintf(rates, "3.66e-09"),
		"rate=0.6,4,semisort": fmt.Sprintf(rates, "1.77e-09"),
		"rate=0.01,":          `slots per bucket must be 2, 4 or 8, not ""`,
		"rate=0.01,semisort":  `slots per bucket must be 2, 4 or 8, not "semisort"`,
	})
}
