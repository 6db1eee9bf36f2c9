package measure

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/filterpolicy"
)

func TestPredictedRateIsThatOfTheBitsTaken(t *testing.T) {
	bloom, err := filterpolicy.Parse("bloom:10")
	require.NoError(t, err)
	blocked, err := filterpolicy.Parse("blocked:10")
	require.NoError(t, err)
	for _, tc := range []struct {
		policy filterpolicy.Policy
		spec   string
		keys   int // of a file
	}{
		{bloom, "bloom:10", 1_000_000}, {bloom, "bloom:14.5", 1_000_000}, {bloom, "bloom:20", 250},
		{blocked, "blocked:10", 1_000_000}, {blocked, "blocked:16", 3000},
	} {
		p, err := filterpolicy.Parse(tc.spec)
		require.NoError(t, err)
		e := filterpolicy.Expected(p, tc.keys)
		const files = 3
		level := engine.LevelShape{Files: files, Entries: int64(files * tc.keys)}
		level.FilterBytes = int64(math.Round(e.BitsPerKey * float64(level.Entries) / 8))
		require.InEpsilon(t, e.FPR, fittedRate(tc.policy, level), 0.02, "%s of %d keys", tc.spec, tc.keys)
		require.InEpsilon(t, e.FPR, namedRate(p, level), 1e-9)
	}
	require.InDelta(t, 1, namedRate(bloom, engine.LevelShape{Files: 1, Entries: 10}), 0, "no filter")
	require.InDelta(t, 1, fittedRate(bloom, engine.LevelShape{Files: 1, Entries: 10}), 0, "no filter")
}

// TestRunsOfALevelArePredictedOneByOne has a level of two runs of which one has twice
// the bits: the mean of their rates is not the rate of their mean bits.
func TestRunsOfALevelArePredictedOneByOne(t *testing.T) {
	bloom, err := filterpolicy.Parse("bloom:10")
	require.NoError(t, err)
	run := func(bits string) (engine.LevelShape, float64) {
		p, err := filterpolicy.Parse(bits)
		require.NoError(t, err)
		e := filterpolicy.Expected(p, 100_000)
		return engine.LevelShape{Level: 4, Runs: 1, Files: 1, Entries: 100_000,
			FilterBytes: int64(math.Round(e.BitsPerKey * 100_000 / 8))}, e.FPR
	}
	few, high := run("bloom:6")
	many, low := run("bloom:12")
	shape := engine.Shape{ByRun: []engine.LevelShape{{Level: 0, Runs: 1, Files: 1, Entries: 5}, many, few}}
	level := engine.LevelShape{Level: 4, Runs: 2, Files: 2, Entries: 200_000,
		FilterBytes: few.FilterBytes + many.FilterBytes}
	shape.Levels = []engine.LevelShape{{Level: 0, Runs: 1, Files: 1, Entries: 5}, level}
	rates := LevelRates(shape, engine.Counters{}, 1, bloom, true)
	require.Len(t, rates, 2)
	require.InDelta(t, 1, rates[0].Predicted, 0, "no filter")
	require.InEpsilon(t, (high+low)/2, rates[1].Predicted, 0.02)
	predicted, _ := SumRates(rates)
	require.InEpsilon(t, 1+high+low, predicted, 0.02)
	require.Greater(t, (high+low)/2, 1.5*fittedRate(bloom, level), "which is what the whole level would be taken for")
}

func TestPassRateCountsUnfilteredProbes(t *testing.T) {
	r := passRate(engine.Tally{FilterChecks: 900, Negatives: 890, FalsePositives: 10, Unfiltered: 100,
		IndexLookups: 110}, 1)
	require.InDelta(t, 0.11, r.Value, 1e-12)
	require.EqualValues(t, 1000, r.Trials)
	low, high := Wilson(0.11, 1000)
	require.Equal(t, []float64{low, high}, []float64{r.Low, r.High})
	require.Nil(t, passRate(engine.Tally{OutOfBounds: 5}, 1))
	require.Nil(t, passRate(engine.UnknownTally(), 1))
}

// TestRatesOfSkewedLookupsHaveWideIntervals has 100,000 probes in each of two levels that
// are worth 100: the rates stay what they are, their intervals and that of their sum are
// those of 100.
func TestRatesOfSkewedLookupsHaveWideIntervals(t *testing.T) {
	bloom, err := filterpolicy.Parse("bloom:10")
	require.NoError(t, err)
	shape := engine.Shape{Levels: []engine.LevelShape{{Level: 5, Runs: 1, Files: 1, Entries: 5},
		{Level: 6, Runs: 1, Files: 1, Entries: 50}}}
	tally := engine.Tally{FilterChecks: 100_000, Negatives: 99_000, FalsePositives: 1000, IndexLookups: 1000}
	c := engine.Counters{Levels: make([]engine.Tally, 7)}
	c.Levels[5], c.Levels[6] = tally, tally
	levels := LevelRates(shape, c, 0.001, bloom, false)
	low, high := Wilson(0.01, 100)
	for _, l := range levels {
		require.Equal(t, &Rate{Value: 0.01, Low: low, High: high, Trials: 100_000, Distinct: 100}, l.Measured)
	}
	_, sum := SumRates(levels)
	require.InDelta(t, 0.02, sum.Value, 1e-12)
	require.InDelta(t, 0.02-math.Sqrt2*(0.01-low), sum.Low, 1e-12)
	require.InDelta(t, 0.02+math.Sqrt2*(high-0.01), sum.High, 1e-12)
}

func TestSumOfRatesCountsEveryRun(t *testing.T) {
	levels := []LevelRate{
		{Level: 0, Runs: 3, Predicted: 0.01, Measured: &Rate{Value: 0.02, Low: 0.01, High: 0.04}},
		{Level: 5, Runs: 1, Predicted: 0.1},
		{Level: 6, Runs: 1, Predicted: 0.2, Measured: &Rate{Value: 0.3, Low: 0.26, High: 0.38}},
	}
	predicted, measured := SumRates(levels)
	require.InDelta(t, 0.33, predicted, 1e-12)
	require.InDelta(t, 0.36, measured.Value, 1e-12)
	require.InDelta(t, 0.36-0.05, measured.Low, 1e-12, "3 x 0.01 and 0.04 make 0.05")
	require.InDelta(t, 0.36+0.1, measured.High, 1e-12, "3 x 0.02 and 0.08 make 0.1")
}
