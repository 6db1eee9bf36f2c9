package compare

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/scale"
)

func tinyCold(t *testing.T) *Config {
	t.Helper()
	most, lookups := 9000, 300
	if scale.Long() {
		most, lookups = 15_000, 600
	}
	return &Config{
		Settings: Settings{
			Engines: []string{"siftkv", "pebble", "bbolt"}, Sizes: []int{1000, most},
			Variants: []string{UsualVariant, "ribbon:12", "budget:6+index:4KiB"},
			KeySize:  16, ValueSize: 1000, Memory: 4 << 20, Lookups: lookups, Seed: 1,
			Store: engine.Settings{BlockBytes: 4096, Compression: "none", Compactions: 1},
		},
		Setup: tinySetup(t, ""),
	}
}

// TestColdPoints loads at least twice the memory limit, so that most blocks are not in memory.
func TestColdPoints(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "lookups of one goroutine")
	c := tinyCold(t)
	r, err := Cold(t.Context(), c)
	require.NoError(t, err)
	var names []string
	for _, of := range r.Cells("engine", "keys") {
		names = append(names, of["engine"])
		require.Positive(t, r.Values(of, "written")[0], of)
		settled := of.With("tree", TreeSettled)
		require.GreaterOrEqual(t, r.Values(of, "peak-disk")[0], r.Values(settled, "disk")[0], of)
	}
	require.Equal(t, []string{"siftkv", "pebble", "bbolt", "siftkv", "siftkv ribbon:12", "siftkv budget:6+index:4KiB",
		"pebble", "bbolt"}, names)
	one := func(name, tree, metric string) float64 { // with the most keys
		values := r.Values(tidy.Of("engine", name, "tree", tree, "keys", c.Sizes[1]), metric)
		require.Len(t, values, 1, "%s of %s", metric, name)
		return values[0]
	}
	states := 0
	for _, of := range r.Cells("engine", "tree", "keys") {
		for _, kind := range []string{"absent", "existing"} {
			require.EqualValues(t, c.Lookups, r.Values(of, kind+" lookups")[0], of)
			require.LessOrEqual(t, r.Values(of, kind+" p50")[0], r.Values(of, kind+" p99")[0])
		}
		require.Positive(t, r.Values(of, "open")[0])
		states++
	}
	require.Equal(t, 2*len(names)+4, states, "two trees, and pebble's are asked in two ways")

	usual := func(metric string) float64 { return one("siftkv", TreeSettled, metric) }
	require.EqualValues(t, c.Sizes[1], usual("entries"))
	require.InDelta(t, 1, usual("runs"), 0)
	require.Greater(t, usual("existing reads"), 0.5, "most blocks are not in memory")
	require.Less(t, usual("existing reads"), 1.1, "a lookup reads one")
	require.Less(t, usual("absent reads"), 0.1, "filters keep most from reading")
	require.Greater(t, usual("existing bytes"), 1000*usual("existing reads"))
	settled := tidy.Of("engine", "siftkv", "tree", TreeSettled, "keys", c.Sizes[1])
	if device := r.Values(settled, "existing device-bytes"); len(device) > 0 {
		require.GreaterOrEqual(t, device[0], usual("existing bytes")*9/10, "what is read comes from the device")
	}
	require.InDelta(t, 10, usual("filters"), 1)
	const ribbon, budget = "siftkv ribbon:12", "siftkv budget:6+index:4KiB"
	lastLayers := 100 * 12 * one(ribbon, TreeSettled, "files") / one(ribbon, TreeSettled, "entries") // package ribbon
	require.InDelta(t, 1.005*12+lastLayers, one(ribbon, TreeSettled, "filters"), 1)
	require.Less(t, one(budget, TreeSettled, "filters"), 8.0)
	require.Less(t, one(budget, TreeSettled, "index-memory"), usual("index-memory"), "leaves of indexes are on disk")
	require.Less(t, 2*one(engine.PebbleIteratorName, TreeSettled, "absent reads"),
		one("pebble", TreeSettled, "absent reads"), "filters of the last level")
	bbolt := tidy.Of("engine", "bbolt", "tree", TreeCalm, "keys", c.Sizes[1])
	require.Empty(t, r.Values(bbolt, "absent reads"), "a memory map is not counted")

	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestColdSizes(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int{5000}, ColdSizes(5000))
	require.Equal(t, []int{10_000, 100_000, 1_000_000}, ColdSizes(1_000_000))
	require.Equal(t, []int{1_000_000, 10_000_000, 100_000_000}, ColdSizes(100_000_000))
}

func TestColdInterrupt(t *testing.T) {
	t.Parallel()
	interrupted(t, tinyCold(t), Cold)
}

func TestColdWrongAnswer(t *testing.T) {
	t.Parallel()
	c := tinyCold(t)
	c.Sizes, c.Worker = []int{1000}, append(c.Worker[:2:2], "forgetful")
	_, err := Cold(t.Context(), c)
	require.ErrorIs(t, err, bench.ErrWrongAnswer)
}

func TestColdUsage(t *testing.T) {
	t.Parallel()
	refused(t, tinyCold, Cold, map[string]func(c *Config){
		"--engine oracle":               func(c *Config) { c.Engines = []string{"oracle"} },
		"--engine: nothing":             func(c *Config) { c.Engines = nil },
		"--keys 10:":                    func(c *Config) { c.Sizes = []int{10} },
		"--compression zstd":            func(c *Config) { c.Store.Compression = "zstd" },
		"values of 1 bytes":             func(c *Config) { c.ValueSize = 1 },
		"--memory 1:":                   func(c *Config) { c.Memory = 1 },
		"--lookups 0:":                  func(c *Config) { c.Lookups = 0 },
		"--variant: nothing":            func(c *Config) { c.Variants = nil },
		"--variant budget:x: budget:x":  func(c *Config) { c.Variants = []string{"budget:x"} },
		"--variant index: ":             func(c *Config) { c.Variants = []string{"index"} },
		"--variant sieve:1: sieve:1":    func(c *Config) { c.Variants = []string{"sieve:1"} },
		"budget:0: want more than 0":    func(c *Config) { c.Variants = []string{"bloom:8+budget:0"} },
		"--dir /nothing/here":           func(c *Config) { c.Dir = "/nothing/here" },
		"free; choose fewer keys, or":   func(c *Config) { c.Sizes, c.ValueSize = []int{maxKeys}, 1<<20 },
		"--keys 1073741824: the stores": func(c *Config) { c.Sizes, c.ValueSize = []int{maxKeys}, 1<<20 },
	})
}
