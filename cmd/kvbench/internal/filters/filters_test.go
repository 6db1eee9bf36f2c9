package filters

import (
	"context"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

func testConfig() *Config {
	return &Config{
		Probing: bench.Probing{Keys: []int{1, 3000}, Probes: 20_000, Repetitions: 2, Seed: 7},
		Filters: []string{"bloom:10", "blocked:10", "cuckoo:12"}, Libraries: true,
		Progress: progress.New(io.Discard, "none"),
	}
}

func TestEveryFilterIsMeasured(t *testing.T) {
	c := testConfig()
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	cells := r.Cells("keys", "filter")
	require.Len(t, cells, 2*(len(c.Filters)+len(libraries)))
	one := func(of tidy.Cell, metric string) float64 {
		require.Len(t, r.Values(of, metric), 1, "%s of %s", metric, of)
		return r.Values(of, metric)[0]
	}
	for _, of := range cells {
		require.Positive(t, one(of, "size"), of)
		for _, metric := range []string{"build", "build-bytes", "present", "absent", "small-absent", "many-absent"} {
			times := r.Values(of, metric)
			require.Len(t, times, c.Repetitions, "%s of %s", metric, of)
			require.Positive(t, slices.Min(times), "%s of %s", metric, of)
		}
		require.LessOrEqual(t, one(of, "fpr-low"), one(of, "fpr"))
		require.LessOrEqual(t, one(of, "fpr"), one(of, "fpr-high"))
		if of["keys"] != "1" { // of one key, some libraries make poor filters
			require.Less(t, one(of, "fpr"), 0.05, of)
		}
	}
	blocked := tidy.Of("keys", 3000, "filter", "blocked:10")
	require.InDelta(t, one(blocked, "theory-size"), one(blocked, "size"), 0.2)
	require.InDelta(t, one(blocked, "theory-fpr"), one(blocked, "fpr"), 0.004)
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
	err := m.measure(context.Background(), liar, &tidy.Result{})
	require.ErrorIs(t, err, bench.ErrWrongAnswer)
	require.ErrorContains(t, err, "liar denies key 42 of 100")
}

func TestBadSettingsAreUsage(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"--keys":   func(c *Config) { c.Keys = []int{0} },
		"--filter": func(c *Config) { c.Filters = []string{"bloom"} },

		"--filter: cuckoo:12 is given twice": func(c *Config) { c.Filters = []string{"cuckoo:12", "cuckoo:12,4"} },
		"--keys: 70 is given twice":          func(c *Config) { c.Keys = []int{70, 70} },
		"--probes":                           func(c *Config) { c.Probes = 1 },
		"--reps":                             func(c *Config) { c.Repetitions = 0 },
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
