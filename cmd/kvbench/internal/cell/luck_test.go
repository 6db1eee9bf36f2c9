package cell

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
)

// TestTheIntervalOfASkewedWorkloadHoldsTheRate asks for absent keys of which a few are
// popular, other ones with each seed. Whether the filter errs for those few decides
// what is measured, so the interval has to be far wider than that of as many distinct
// keys.
func TestTheIntervalOfASkewedWorkloadHoldsTheRate(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := small()
	s.Filter, s.Lookups, s.Reps = "bloom:4", 2999, 1
	all, err := l.Run(t.Context(), s)
	require.NoError(t, err)
	rate := all.Absent.FPR
	require.EqualValues(t, rate.Trials, rate.Distinct, "every absent key was asked for once")

	seeds := scale.Count(20, 40)
	held, off := 0, 0
	for seed := range uint64(seeds) {
		s.Workload, s.Seed = Zipfian, seed
		r, err := l.Run(t.Context(), s)
		require.NoError(t, err)
		f := r.Absent.FPR
		require.Less(t, f.Distinct, f.Trials/20)
		require.Len(t, r.Levels, 1)
		require.Equal(t, f, r.Levels[0].Measured, "the only level has the interval of all")
		require.InDelta(t, f.High, r.Sum.High, 1e-12)
		if f.Low <= rate.Value && rate.Value <= f.High {
			held++
		}
		if f.Value < rate.Value/1.1 || f.Value > rate.Value*1.1 {
			off++
		}
	}
	require.GreaterOrEqual(t, held, seeds*9/10)
	require.Greater(t, off, seeds/2, "luck matters, else nothing is shown")
}

// TestTheRateOfASkewedWorkloadIsALottery holds what docs/study.md says of it by theory:
// the rate that lookups see is the sum of the shares of those keys that happen to pass.
func TestTheRateOfASkewedWorkloadIsALottery(t *testing.T) {
	t.Parallel()
	const keys, rate, stores = 200_000, 0.0082, 2000
	for _, tc := range []struct{ theta, low, median, high, worth float64 }{
		{0.5, 0.0076, 0.0082, 0.0089, 62_400},
		{0.8, 0.0063, 0.0076, 0.0120, 1230},
		{0.99, 0.0042, 0.0061, 0.0178, 110},
	} {
		shares, sum, squares := make([]float64, keys), 0.0, 0.0
		for i := range shares {
			shares[i] = math.Pow(float64(i+1), -tc.theta)
			sum += shares[i]
			squares += shares[i] * shares[i]
		}
		rng := rand.New(rand.NewPCG(1, 2))
		seen := make([]float64, stores)
		for n := range seen {
			// The gaps between keys that pass are geometrically distributed.
			for i := 0; ; i++ {
				if i += int(math.Log(1-rng.Float64()) / math.Log1p(-rate)); i >= keys {
					break
				}
				seen[n] += shares[i] / sum
			}
		}
		slices.Sort(seen)
		low, median, high := seen[stores/20], seen[stores/2], seen[stores-stores/20]
		t.Logf("Zipf %g: worth at most %.0f lookups, 5 %% %.5f, median %.5f, 95 %% %.5f", tc.theta, sum*sum/squares,
			low, median, high)
		require.InEpsilon(t, tc.worth, sum*sum/squares, 0.02)
		require.InEpsilon(t, tc.low, low, 0.05)
		require.InEpsilon(t, tc.median, median, 0.03)
		require.InEpsilon(t, tc.high, high, 0.07)
	}
}
