package ranges

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

func testConfig() *Config {
	return &Config{
		Keys: []int{3000}, Sets: Generated(), Filters: []string{"cut:4", "cut:8"},
		Settings: Settings{Probes: 2000, Repetitions: 2, Seed: 7}, Progress: progress.New(io.Discard, "none"),
	}
}

func TestEverySetIsMeasured(t *testing.T) {
	c := testConfig()
	path := filepath.Join(t.TempDir(), "keys.txt")
	r := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for range 1000 {
		text.Write(name(r))
		text.WriteByte('\n')
	}
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	c.Sets = append(c.Sets, path)
	result, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, result.Tables, 5)
	for i, table := range result.Tables {
		require.Equal(t, append(Generated(), "keys.txt")[i], table.Set)
		require.Len(t, table.Rows, 2)
		require.Positive(t, table.KeyBytes)
		few, many := table.Rows[0], table.Rows[1]
		require.InDelta(t, 4, many.BitsPerKey-few.BitsPerKey, 0.3, table.Set)
		for j, rate := range many.Rates {
			require.Positive(t, rate.Asked, "%s: %s", table.Set, rate.Ranges)
			const rounding = 1e-9
			require.LessOrEqual(t, rate.Low, rate.Rate+rounding)
			require.LessOrEqual(t, rate.Rate, rate.High+rounding)
			require.LessOrEqual(t, rate.Rate, few.Rates[j].Rate+0.01, "%s: %s", table.Set, rate.Ranges)
			require.Positive(t, rate.Ns)
		}
		require.Positive(t, many.BuildNs)
		require.Positive(t, many.PointNs)
	}
}

// Ranges are narrow or wide, and near a key, as their names say: what begins nearer than the cut
// can tell is passed.
func TestRangesAreWhatTheySay(t *testing.T) {
	c := testConfig()
	c.Sets, c.Filters = []string{"random"}, []string{"cut:6"}
	result, err := Run(t.Context(), c)
	require.NoError(t, err)
	rates := map[string]Rate{}
	for _, rate := range result.Tables[0].Rows[0].Rates {
		rates[rate.Ranges] = rate
	}
	require.Len(t, rates, 24)
	theory := result.Tables[0].Rows[0].TheoryRate
	for _, narrow := range []string{"2 units", "32 units", "1,024 units", "1/100 gap"} {
		require.Less(t, rates[narrow+", anywhere"].Low, 1.1*theory, narrow)
		require.Greater(t, rates[narrow+", anywhere"].High, 0.9*theory, narrow)
		require.Greater(t, rates[narrow+", within 2^-20 gap of a key"].Rate, 0.99, narrow)
	}
	require.Greater(t, rates["2 units, within 2^-4 gap of a key"].Rate, rates["2 units, anywhere"].Rate)
	require.Equal(t, c.Probes, rates["2 units, anywhere"].Asked)
}

func TestADeniedKeyEndsTheRun(t *testing.T) {
	m := newMeter(testConfig(), randomKeys(rand.New(rand.NewPCG(1, 2)), 100))
	err := m.check("liar", liar{})
	require.ErrorIs(t, err, bench.ErrWrongAnswer)
	require.ErrorContains(t, err, "liar denies key 0 of 100")
}

type liar struct{ filterpolicy.RangeFilter }

func (liar) MayContainRange(_, _ []byte) bool { return false }

func TestBadSettingsAreUsage(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"--keys":   func(c *Config) { c.Keys = []int{1} },
		"--filter": func(c *Config) { c.Filters = []string{"cut"} },
		"--sets":   func(c *Config) { c.Sets = []string{"cities"} },
		"--probes": func(c *Config) { c.Probes = 1 },
		"--reps":   func(c *Config) { c.Repetitions = 0 },
	} {
		c := testConfig()
		change(c)
		_, err := Run(t.Context(), c)
		require.ErrorIs(t, err, bench.ErrUsage, name)
		require.ErrorContains(t, err, name)
	}
	c := testConfig()
	c.Filters = []string{"none"}
	_, err := Run(t.Context(), c)
	require.ErrorContains(t, err, "none declines")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Run(ctx, testConfig())
	require.ErrorIs(t, err, context.Canceled)
}
