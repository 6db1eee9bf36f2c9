package cell

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheIntervalOfASkewedWorkloadHoldsTheRate asks for absent keys of which a few are
// popular, other ones with each seed. Whether the filter errs for those few decides
// what is measured, so the interval has to be far wider than that of as many distinct
// keys.
func TestTheIntervalOfASkewedWorkloadHoldsTheRate(t *testing.T) {
	l := newLab(t)
	s := small()
	s.Filter, s.Lookups, s.Reps = "bloom:4", 2999, 1
	all, err := l.Run(t.Context(), s)
	require.NoError(t, err)
	rate := all.Absent.FPR
	require.EqualValues(t, rate.Trials, rate.Distinct, "every absent key was asked for once")

	const seeds = 40
	held, off := 0, 0
	for seed := range uint64(seeds) {
		s.Workload, s.Seed = Zipfian, seed
		r, err := l.Run(t.Context(), s)
		require.NoError(t, err)
		f := r.Absent.FPR
		require.Less(t, f.Distinct, f.Trials/20)
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
