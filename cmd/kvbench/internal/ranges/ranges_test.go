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
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

func testConfig() *Config {
	return &Config{
		Probing: bench.Probing{Keys: []int{3000}, Probes: 2000, Repetitions: 2, Seed: 7},
		Sets:    Generated(), Filters: []string{"cut:4", "cut:8"}, Progress: progress.New(io.Discard, "none"),
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
	require.Equal(t, append(Generated(), "keys.txt"), result.Each("set"))
	one := func(of tidy.Cell, metric string) float64 {
		require.NotEmpty(t, result.Values(of, metric), "%s of %s", metric, of)
		return result.Values(of, metric)[0]
	}
	for _, set := range result.Cells("set", "keys") {
		require.Positive(t, one(set, "key-size"))
		few, many := set.With("filter", "cut:4"), set.With("filter", "cut:8")
		require.InDelta(t, 4, one(many, "size")-one(few, "size"), 0.3, set)
		require.Positive(t, one(many, "build"))
		require.Positive(t, one(many, "point-build"))
	}
	kinds := 0
	for _, of := range result.Cells("set", "keys", "filter", "ranges") {
		require.Positive(t, one(of, "asked"), of)
		const rounding = 1e-9
		require.LessOrEqual(t, one(of, "rate-low"), one(of, "rate")+rounding)
		require.LessOrEqual(t, one(of, "rate"), one(of, "rate-high")+rounding)
		if of["filter"] == "cut:8" {
			require.LessOrEqual(t, one(of, "rate"), one(of.With("filter", "cut:4"), "rate")+0.01, of)
		}
		require.Len(t, result.Values(of, "query"), c.Repetitions)
		kinds++
	}
	require.Greater(t, kinds, 2*24)
}

// Ranges are narrow or wide, and near a key, as their names say: what begins nearer than the cut
// can tell is passed.
func TestRangesAreWhatTheySay(t *testing.T) {
	c := testConfig()
	c.Sets, c.Filters = []string{"random"}, []string{"cut:6"}
	result, err := Run(t.Context(), c)
	require.NoError(t, err)
	rate := func(ranges, metric string) float64 {
		of := result.Cells("set", "keys", "filter")[0].With("ranges", ranges)
		require.Len(t, result.Values(of, metric), 1, of)
		return result.Values(of, metric)[0]
	}
	require.Len(t, result.Each("ranges"), 24)
	theory := result.Values(result.Cells("set", "keys", "filter")[0], "theory-rate")[0]
	for _, narrow := range []string{"2 units", "32 units", "1,024 units", "1/100 gap"} {
		require.Less(t, rate(narrow+", anywhere", "rate-low"), 1.1*theory, narrow)
		require.Greater(t, rate(narrow+", anywhere", "rate-high"), 0.9*theory, narrow)
		require.Greater(t, rate(narrow+", within 2^-20 gap of a key", "rate"), 0.99, narrow)
	}
	require.Greater(t, rate("2 units, within 2^-4 gap of a key", "rate"), rate("2 units, anywhere", "rate"))
	require.EqualValues(t, c.Probes, rate("2 units, anywhere", "asked"))
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

		"--filter: cut:4 is given twice": func(c *Config) { c.Filters = []string{"cut:4", "cut:4"} },
		"--sets: urls is given twice":    func(c *Config) { c.Sets = []string{"urls", "urls"} },
		"--sets":                         func(c *Config) { c.Sets = []string{"cities"} },
		"--probes":                       func(c *Config) { c.Probes = 1 },
		"--reps":                         func(c *Config) { c.Repetitions = 0 },
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
