package readamp

import (
	"os"
	"testing"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// budgetOnly is a run of the comparison and little else.
func budgetOnly(t *testing.T, keys string) *Config {
	t.Helper()
	c := small(t)
	c.Keys.Keys, c.Engines, c.Filters = keys, []string{SiftKV}, []string{"none"}
	c.Budget, c.Lookups, c.Repetitions = "bloom:10", 10, 1
	return c
}

func TestTheBudgetCostsLessAtEqualMemory(t *testing.T) {
	t.Parallel()
	r, err := Run(t.Context(), budgetOnly(t, "8000"))
	require.NoError(t, err)
	require.NoError(t, r.Identities.Err())
	require.Contains(t, r.Identities.Rules, ruleBudgetLevels)
	require.Equal(t, "bloom:10", r.Settings.Budget)
	require.Len(t, r.Stores, 1, "its stores have a place of their own")

	b := r.Budget
	require.Equal(t, 8000, b.Keys)
	require.Equal(t, 7999, b.Lookups)
	require.Greater(t, b.Rewritten, 2400)
	require.Zero(t, b.Uniform.Tree.FilterBudgetBytes)
	require.Equal(t, b.Uniform.Shape.Total().FilterBytes, b.Spread.Tree.FilterBudgetBytes)
	require.InDelta(t, 1, b.Memory, 0.12, "files of a few hundred keys have filters of much rounding")
	require.Greater(t, b.Predicted, 1.5)
	require.Greater(t, b.Measured, 1.5)
	for _, s := range []*BudgetStore{&b.Uniform, &b.Spread} {
		require.GreaterOrEqual(t, len(s.Levels), 3, s.Name)
		first, last := s.Levels[0], s.Levels[len(s.Levels)-1]
		require.Equal(t, 0, first.Level)
		require.Equal(t, 2, first.Runs)
		require.Equal(t, 1, last.Runs)
		require.EqualValues(t, 8000, last.Keys, "every key has been compacted")
		require.InDelta(t, 7999, last.Measured.Trials, 100, "absent keys are asked of every level")
		require.InEpsilon(t, s.PredictedSum, s.MeasuredSum.Value, 0.5, s.Name)
		require.Less(t, s.MeasuredSum.Low, s.MeasuredSum.Value)
		require.Greater(t, s.MeasuredSum.High, s.MeasuredSum.Value)
		require.Positive(t, s.NsPerLookup)
	}
	require.Greater(t, b.Spread.Levels[0].BitsPerKey, b.Uniform.Levels[0].BitsPerKey+4, "young runs get more")
}

// TestTheBudgetOfSeveralRunsPerLevel grows trees with several runs in a level, and holds
// what is predicted of them against what was counted.
func TestTheBudgetOfSeveralRunsPerLevel(t *testing.T) {
	t.Parallel()
	for kind, several := range map[string]bool{"leveled": false, "lazy-leveled": true, "tiered": true} {
		c := budgetOnly(t, "8000")
		c.Compaction = kind
		r, err := Run(t.Context(), c)
		require.NoError(t, err)
		require.NoError(t, r.Identities.Err(), kind)
		require.Contains(t, r.Identities.Rules, ruleBudgetRuns)
		require.Equal(t, kind, r.Settings.Compaction)
		for _, s := range []*BudgetStore{&r.Budget.Uniform, &r.Budget.Spread} {
			require.Equal(t, kind, s.Tree.Compaction)
			most := 0
			for i, l := range s.Levels {
				if l.Level == 0 {
					continue
				}
				most = max(most, l.Runs)
				require.Len(t, s.Shape.RunsOf(s.Shape.Levels[i]), l.Runs)
				require.InEpsilon(t, r.Budget.Lookups*l.Runs, l.Measured.Trials, 0.2,
					"%s, %s, level %d: every run is asked, but for keys between its files", kind, s.Name, l.Level)
			}
			require.Equal(t, several, most > 1, "%s: runs in a level", kind)
			require.InEpsilon(t, s.PredictedSum, s.MeasuredSum.Value, 0.5, "%s, %s", kind, s.Name)
			index := float64(s.Counters.Total.IndexLookups) / float64(r.Budget.Lookups)
			require.InEpsilon(t, s.MeasuredSum.Value, index, 0.2, "%s: the sum of the rates is what a lookup reads",
				kind)
		}
	}
	c := budgetOnly(t, "2000")
	c.Compaction = "sideways"
	_, err := Run(t.Context(), c)
	require.ErrorIs(t, err, bench.ErrUsage)
	require.ErrorContains(t, err, "choose from leveled")
}

func TestTheBudgetIsDeterministic(t *testing.T) {
	t.Parallel()
	var budgets [2]*Budget
	for i := range budgets {
		r, err := Run(t.Context(), budgetOnly(t, "2000"))
		require.NoError(t, err)
		budgets[i] = r.Budget
	}
	a, b := budgets[0], budgets[1]
	require.Equal(t, a.Uniform.Shape, b.Uniform.Shape)
	require.Equal(t, a.Spread.Shape, b.Spread.Shape)
	require.Equal(t, a.Spread.Counters, b.Spread.Counters)
	require.Equal(t, a.Spread.MeasuredSum, b.Spread.MeasuredSum)
}

func TestTheBudgetCanBeLeftOut(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"empty":     func(c *Config) { c.Budget = "" },
		"none":      func(c *Config) { c.Budget = "none" },
		"no siftkv": func(c *Config) { c.Engines = []string{PebblePlain} },
	} {
		c := budgetOnly(t, "500")
		change(c)
		r, err := Run(t.Context(), c)
		require.NoError(t, err, name)
		require.Nil(t, r.Budget, name)
		require.Empty(t, r.Settings.Budget, name)
		require.NotContains(t, r.Identities.Rules, ruleBudgetLevels, name)
	}
	c := budgetOnly(t, "500")
	c.Budget = "sieve:10"
	_, err := Run(t.Context(), c)
	require.ErrorIs(t, err, bench.ErrUsage)
	require.ErrorContains(t, err, "--budget")
}

func TestTheBudgetFindsLiesAndBrokenCounters(t *testing.T) {
	t.Parallel()
	c := budgetOnly(t, "500")
	c.Wrap = wrap("siftkv budget bloom:10", func(r engine.Reader) engine.Reader { return inventive{r} })
	_, err := Run(t.Context(), c)
	require.ErrorIs(t, err, bench.ErrWrongAnswer)
	require.ErrorContains(t, err, "siftkv budget bloom:10: wrong answer for the absent key")
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)

	c.Wrap = wrap("siftkv uniform bloom:10", func(r engine.Reader) engine.Reader { return miscounting{r} })
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.ErrorContains(t, r.Identities.Err(), "siftkv uniform bloom:10, absent keys")
}

// inventive finds every key.
type inventive struct{ engine.Reader }

func (inventive) Get(dst, _ []byte) ([]byte, bool, error) { return append(dst, "value"...), true, nil }

func TestGainsAndEqualMemory(t *testing.T) {
	t.Parallel()
	store := func(bytes int64, sum, blocks float64) BudgetStore {
		return BudgetStore{
			Shape:        engine.Shape{Levels: []engine.LevelShape{{Level: 6, FilterBytes: bytes}}},
			PredictedSum: sum, MeasuredSum: measure.Sum{Value: 2 * sum}, BlocksPerLookup: blocks,
		}
	}
	b := &Budget{Uniform: store(1000, 0.04, 0.08), Spread: store(1019, 0.01, 0.04)}
	b.gains()
	require.InDelta(t, 1.019, b.Memory, 1e-12)
	require.InDelta(t, 4, b.Predicted, 1e-12)
	require.InDelta(t, 4, b.Measured, 1e-12)
	require.InDelta(t, 2, b.Blocks, 1e-12)
	require.Empty(t, b.warnings())

	b.Spread = store(1030, 0, 0)
	b.gains()
	require.Zero(t, b.Measured, "nothing is divided by zero")
	require.Len(t, b.warnings(), 1)
	require.Contains(t, b.warnings()[0], "+3.0 %")
}
