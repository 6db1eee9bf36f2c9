package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/bloom"
)

// The rates that every textbook prints: 1 % at 9.585 bits, 0.1 % at 14.378.
func TestBloomExpectedKnowsTheTextbook(t *testing.T) {
	for spec, rate := range map[string]float64{"bloom:9.585": 0.01, "bloom:14.378": 0.001} {
		p, err := filterpolicy.Parse(spec)
		require.NoError(t, err)
		require.InEpsilon(t, rate, filterpolicy.Expected(p, 1_000_000).FPR, 0.01)
	}
}

func TestBloomRates(t *testing.T) {
	Means(t, map[string]string{
		"bloom:010.500": "bloom:10.5", "bloom:rate=0.01": "bloom:9.593", "bloom:rate=0.001": "bloom:14.378",
		"bloom:rate=0.5": "bloom:1.443",
	})
	RatesFall(t, "bloom", 64)
	LeastBitsKeepRates(t, "bloom:", "", 0.5, 0.3, 0.1, 0.01, 0.001, 1e-6, 1e-9, 1e-13)
}

func TestBloomParseSaysWhatIsWrong(t *testing.T) {
	Refuses(t, bloom.Parse, map[string]string{
		"0.5": `bits per key must be a number from 1 to 64 ` +
			`with at most three decimals, not "0.5"; for example "bloom:10"`,
		"rate=0.6": `rate must be a decimal fraction from 4.43e-14 to 0.5, such as 0.01, ` +
			`not "0.6"; for example "bloom:10"`,
		"rate=10": `rate must be a decimal fraction`,
	})
}
