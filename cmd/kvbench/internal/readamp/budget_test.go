package readamp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// treesOnly is a run of the two trees and little else.
func treesOnly(t *testing.T, keys string) *trial {
	t.Helper()
	c := small(t)
	c.set("keys", keys).set("lookups", "10").set("reps", "1")
	c.Engines, c.Filters, c.Budget = []string{SiftKV}, []string{"none"}, "bloom:10"
	return c
}

// grown runs it and returns the trees.
func (c *trial) grown(t *testing.T) (uniform, spread *cell.Result) {
	t.Helper()
	set, err := c.run(t.Context())
	require.NoError(t, err)
	require.NoError(t, identities(set).Err())
	require.Len(t, set, 4, "null, none, and the trees")
	for _, r := range set[2:] {
		require.Subset(t, r.Identities.Rules, []string{
			"probes and passes behind the rates of all levels = those counted in all",
			"runs, files, entries and filter bytes of the runs of a level = those of the level",
			"lookups x runs of a level >= files considered there",
		})
	}
	return set[2], set[3]
}

func TestTheBudgetCostsLessAtEqualMemory(t *testing.T) {
	t.Parallel()
	uniform, spread := treesOnly(t, "8000").grown(t)
	require.Equal(t, "siftkv uniform bloom:10", uniform.Name)
	require.Equal(t, cell.Spread, spread.Settings.Budget)
	require.Zero(t, uniform.Build.Tree.FilterBudgetBytes)
	require.Equal(t, uniform.Shape.Total().FilterBytes, spread.Build.Tree.FilterBudgetBytes)
	require.InEpsilon(t, uniform.Shape.Total().FilterBytes, spread.Shape.Total().FilterBytes, 0.12,
		"files of a few hundred keys have filters of much rounding")
	require.Greater(t, uniform.Predicted, 1.5*spread.Predicted)
	require.Greater(t, uniform.Sum.Value, 1.5*spread.Sum.Value)
	require.Greater(t, uniform.Absent.Counters.Total.Blocks(), spread.Absent.Counters.Total.Blocks())
	for _, r := range []*cell.Result{uniform, spread} {
		require.Equal(t, 8000, r.Keys.Present)
		require.Equal(t, 7999, r.Absent.Lookups)
		require.Greater(t, r.Build.Rewritten, 2400)
		require.GreaterOrEqual(t, len(r.Levels), 3, r.Name)
		first, last := r.Levels[0], r.Levels[len(r.Levels)-1]
		require.Equal(t, 0, first.Level)
		require.Equal(t, 2, first.Runs)
		require.Equal(t, 1, last.Runs)
		require.InDelta(t, 8000, last.Keys, 100, "nearly every key has been compacted")
		require.InDelta(t, 7999, last.Measured.Trials, 100, "absent keys are asked of every level")
		require.InEpsilon(t, r.Predicted, r.Sum.Value, 0.5, r.Name)
		require.Less(t, r.Sum.Low, r.Sum.Value)
		require.Greater(t, r.Sum.High, r.Sum.Value)
		require.Positive(t, r.Absent.NsPerLookup)
	}
	require.Greater(t, spread.Levels[0].BitsPerKey, uniform.Levels[0].BitsPerKey+4, "young runs get more")
}

// TestTheBudgetOfSeveralRunsPerLevel grows trees with several runs in a level, and holds
// what is predicted of them against what was counted.
func TestTheBudgetOfSeveralRunsPerLevel(t *testing.T) {
	t.Parallel()
	for kind, several := range map[string]bool{"leveled": false, "lazy-leveled": true, "tiered": true} {
		c := treesOnly(t, "10000")
		c.set("compaction", kind)
		uniform, spread := c.grown(t)
		for _, r := range []*cell.Result{uniform, spread} {
			require.Equal(t, kind, r.Build.Tree.Compaction)
			most := 0
			for i, l := range r.Levels {
				if l.Level == 0 {
					continue
				}
				most = max(most, l.Runs)
				require.Len(t, r.Shape.RunsOf(r.Shape.Levels[i]), l.Runs)
				require.InEpsilon(t, r.Absent.Lookups*l.Runs, l.Measured.Trials, 0.2,
					"%s, %s, level %d: every run is asked, except about keys between its files", kind, r.Name, l.Level)
			}
			require.Equal(t, several, most > 1, "%s: runs in a level", kind)
			require.InEpsilon(t, r.Predicted, r.Sum.Value, 0.5, "%s, %s", kind, r.Name)
			index := float64(r.Absent.Counters.Total.IndexLookups) / float64(r.Absent.Lookups)
			require.InEpsilon(t, r.Sum.Value, index, 0.2, "%s: the sum of the rates is what a lookup reads", kind)
		}
	}
}

func TestTheBudgetIsDeterministic(t *testing.T) {
	t.Parallel()
	var uniform, spread [2]*cell.Result
	for i := range uniform {
		uniform[i], spread[i] = treesOnly(t, "2000").grown(t)
	}
	require.Equal(t, uniform[0].Shape, uniform[1].Shape)
	require.Equal(t, spread[0].Shape, spread[1].Shape)
	require.Equal(t, spread[0].Absent.Counters, spread[1].Absent.Counters)
	require.Equal(t, spread[0].Sum, spread[1].Sum)
}

func TestTheBudgetCanBeLeftOut(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*trial){
		"empty":     func(c *trial) { c.Budget = "" },
		"none":      func(c *trial) { c.Budget = "none" },
		"no siftkv": func(c *trial) { c.Engines = []string{"pebble/none"} },
	} {
		c := treesOnly(t, "500")
		change(c)
		set, err := c.run(t.Context())
		require.NoError(t, err, name)
		require.Len(t, set, 2, name)
		require.NotEqual(t, cell.Grown, set[1].Settings.Shape, name)
	}
	for spec, want := range map[string]string{"sieve:10": "--budget", "oracle": "--budget"} {
		c := treesOnly(t, "500")
		c.Budget = spec
		_, err := c.run(t.Context())
		require.ErrorIs(t, err, bench.ErrUsage)
		require.ErrorContains(t, err, want)
	}
}

// TestTheSettingsOfTheTreesSayTheirKeys holds the number in the settings, by which report and diff know a cell, against
// the keys that the trees have.
func TestTheSettingsOfTheTreesSayTheirKeys(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"500": "500", "300_000": "300000", "400000": "300000", "": "300000"} {
		c := treesOnly(t, given)
		if given == "" {
			delete(c.Settings, "keys")
		}
		rows, err := c.rows()
		require.NoError(t, err)
		source, err := rows[0].Settings.Open()
		require.NoError(t, err)
		trees, err := c.trees()
		require.NoError(t, err)
		for _, row := range trees {
			require.Equal(t, want, row.Settings.Keys)
		}
		few, err := treeKeys(source, &trees[0].Settings, maxTreeKeys)
		require.NoError(t, err)
		require.Equal(t, want, strconv.Itoa(few.Present()))
		require.Equal(t, few.Present(), few.Describe().Present)
		require.Equal(t, few.Present()-1, few.Absent())
	}
}

func TestTheTreesHaveTheFirstKeysOfAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	var lines []byte
	for i := range 500 {
		lines = fmt.Appendf(lines, "key %d\n", i)
	}
	require.NoError(t, os.WriteFile(path, lines, 0o600))
	trees, err := treesOnly(t, path).trees()
	require.NoError(t, err)
	source, err := trees[0].Settings.Open()
	require.NoError(t, err)
	few, err := treeKeys(source, &trees[0].Settings, 100)
	require.NoError(t, err)
	require.Contains(t, trees[0].Settings.Keys, "keys@")
	require.Equal(t, 100, few.Present())
	require.Equal(t, 100, few.Describe().Present)
	require.Equal(t, source.Absent(), few.Absent())
}

func TestTheBudgetFindsLiesAndBrokenCounters(t *testing.T) {
	t.Parallel()
	c := treesOnly(t, "500")
	c.wrap = wrap("siftkv budget bloom:10", func(r engine.Reader) engine.Reader { return inventive{r} })
	_, err := c.run(t.Context())
	require.ErrorIs(t, err, bench.ErrWrongAnswer)
	require.ErrorContains(t, err, "siftkv budget bloom:10: wrong answer for the absent key")
	left, err := os.ReadDir(c.dir)
	require.NoError(t, err)
	require.Empty(t, left)

	c.wrap = wrap("siftkv uniform bloom:10", func(r engine.Reader) engine.Reader { return miscounting{r} })
	set, err := c.run(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, identities(set).Err(), "siftkv uniform bloom:10, existing keys")
	require.True(t, slices.ContainsFunc(identities(set).Failures, func(f measure.Failure) bool {
		return strings.HasPrefix(f.Where, "siftkv uniform bloom:10, absent keys")
	}))
}

// inventive finds a value for every key.
type inventive struct{ engine.Reader }

func (r inventive) Get(dst, key []byte) ([]byte, bool, error) {
	value, found, err := r.Reader.Get(dst, key)
	if !found {
		value = append(value, "value"...)
	}
	return value, true, err
}
