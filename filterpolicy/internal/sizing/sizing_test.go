package sizing

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckSaysWhatIsWrong(t *testing.T) {
	require.NoError(t, Check(1, MinRate, MinRate))
	require.NoError(t, Check(min(MaxKeys, math.MaxInt), MaxRate, MinRate))
	for _, n := range []int64{math.MinInt, -1, 0, MaxKeys + 1, math.MaxInt64} {
		if int64(int(n)) != n {
			continue // an int of 32 bits cannot be so large
		}
		require.ErrorContains(t, Check(int(n), 0.01, MinRate), "capacity must be from 1 to 1099511627776 keys, not ")
	}
	for _, rate := range []float64{math.NaN(), math.Inf(-1), -1, 0, 1e-13, 0.91, 1, 10, math.Inf(1)} {
		require.ErrorContains(t, Check(1, rate, MinRate), "false-positive rate must be from 1e-12 to 0.9, not ")
	}
}

func TestFits(t *testing.T) {
	require.NoError(t, Fits(math.MaxInt))
	require.ErrorContains(t, Fits(math.MaxInt+1), "does not fit the address space")
}

// The figures that every textbook prints.
func TestBitsAreTheTextbooks(t *testing.T) {
	for rate, perKey := range map[float64]float64{0.01: 9.585, 0.001: 14.378, 0.5: 1.443, 1e-12: 57.51} {
		m, k := Bits(1_000_000, rate)
		require.InEpsilon(t, perKey, float64(m)/1e6, 0.006, "rate %g", rate)
		require.InDelta(t, -math.Log2(rate), k, 1)
	}
}

func TestShapesKeepTheirPromise(t *testing.T) {
	for _, rate := range []float64{MinRate, 1e-9, 1e-6, 0.001, 0.0099, 0.01, 0.03, 0.25, 0.5, 0.75, MaxRate} {
		for _, keys := range []int64{1, 2, 3, 10, 100, 12345, 1 << 20, 1 << 32, MaxKeys} {
			n := int(min(keys, math.MaxInt))
			m, k := Bits(n, rate)
			require.Zero(t, m%wordBits)
			require.True(t, k >= 1 && k <= MaxProbes)
			require.LessOrEqual(t, rateOf(float64(n), float64(m), k), rate, "%d keys", n)
			if m > 2*wordBits && n > 1000 {
				require.Greater(t, rateOf(float64(n), float64(m-2*wordBits), k), rate*0.999999, "%d keys: too large", n)
			}
			s, k := Slice(n, rate)
			fill := -math.Expm1(float64(n) * math.Log1p(-1/float64(s)))
			require.LessOrEqual(t, math.Pow(fill, float64(k)), rate*1.00001, "%d keys", n)
			require.Less(t, float64(s)*float64(k), 1.02*float64(m)+64, "%d keys", n)
		}
	}
}

// Rate against simulation, where the textbook's formula is off by several per cent.
func TestRateOfSmallFilters(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n, m, k, rounds = 10, 128, 9, 200_000
	sum, squares := 0.0, 0.0
	for range rounds {
		var cells [2]uint64
		set := 0
		for range n * k {
			at := r.Uint64N(m)
			if cells[at/64]>>(at%64)&1 == 0 {
				cells[at/64] |= 1 << (at % 64)
				set++
			}
		}
		x := math.Pow(float64(set)/m, k)
		sum, squares = sum+x, squares+x*x
	}
	mean := sum / rounds
	sigma := math.Sqrt((squares/rounds - mean*mean) / rounds)
	require.InDelta(t, mean, rateOf(n, m, k), 0.01*mean+4*sigma)
	textbook := math.Pow(-math.Expm1(-n*k/float64(m)), k)
	require.Greater(t, mean, 1.05*textbook)
}
