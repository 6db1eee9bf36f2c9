package filters

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

func testConfig() *Config {
	return &Config{
		Keys: []int{1, 3000}, Filters: []string{"bloom:10", "blocked:10", "cuckoo:12"}, Libraries: true,
		Settings: Settings{Probes: 20_000, Repetitions: 2, Seed: 7}, Progress: progress.New(io.Discard, "none"),
	}
}

func TestEveryFilterIsMeasured(t *testing.T) {
	c := testConfig()
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, r.Tables, 2)
	for i, table := range r.Tables {
		require.Equal(t, c.Keys[i], table.Keys)
		require.Len(t, table.Rows, len(c.Filters)+len(libraries))
		for _, row := range table.Rows {
			require.Positive(t, row.BitsPerKey, row.Name)
			require.Positive(t, row.BuildNs, row.Name)
			require.Positive(t, row.AbsentNs, row.Name)
			require.Positive(t, row.ManyAbsentNs, row.Name)
			require.Positive(t, row.FasterThanPebble, row.Name)
			require.LessOrEqual(t, row.FPRLow, row.FPR)
			require.LessOrEqual(t, row.FPR, row.FPRHigh)
			if table.Keys > 1 { // of one key, some libraries make poor filters
				require.Less(t, row.FPR, 0.05, row.Name)
			}
		}
	}
	row := r.Tables[1].Rows[1]
	require.Equal(t, "blocked:10", row.Name)
	require.InDelta(t, row.TheoryBits, row.BitsPerKey, 0.2)
	require.InDelta(t, row.TheoryFPR, row.FPR, 0.004)
}

func TestHashesAreDistinct(t *testing.T) {
	c := testConfig()
	m := newMeter(c, 50_000)
	seen := map[uint64]bool{}
	for _, h := range append(m.present, m.absent...) {
		require.False(t, seen[h])
		seen[h] = true
	}
}

func TestADeniedKeyEndsTheRun(t *testing.T) {
	m := newMeter(testConfig(), 100)
	liar := candidate{name: "liar", build: func([]uint64) (set, error) {
		return set{func(h uint64) bool { return h != m.present[42] }, 10}, nil
	}}
	_, err := m.row(context.Background(), liar)
	require.ErrorIs(t, err, bench.ErrWrongAnswer)
	require.ErrorContains(t, err, "liar denies key 42 of 100")
}

func TestBadSettingsAreUsage(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"--keys":   func(c *Config) { c.Keys = []int{0} },
		"--filter": func(c *Config) { c.Filters = []string{"bloom"} },
		"--probes": func(c *Config) { c.Probes = 1 },
		"--reps":   func(c *Config) { c.Repetitions = 0 },
	} {
		c := testConfig()
		change(c)
		_, err := Run(t.Context(), c)
		require.ErrorIs(t, err, bench.ErrUsage, name)
		require.ErrorContains(t, err, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, testConfig())
	require.ErrorIs(t, err, context.Canceled)
}
