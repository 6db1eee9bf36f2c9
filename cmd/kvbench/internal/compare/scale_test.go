package compare

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/scale"
)

func tinyScale(t *testing.T) *Config {
	t.Helper()
	return &Config{
		Settings: Settings{
			Engines: []string{"siftkv", "bbolt"}, Sizes: []int{2000, 10_000},
			KeySize: 16, ValueSize: 100, CacheShare: 0.5, Repetitions: 2, Seconds: 0.002, Seed: 1,
			Store: engine.Settings{MemtableBytes: 1 << 20, BlockBytes: 4096, Compression: "snappy", Compactions: 1},
		},
		Setup: tinySetup(t, ""),
	}
}

func TestPoints(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "lookups of one goroutine")
	c := tinyScale(t)
	r, err := Scale(t.Context(), c)
	require.NoError(t, err)
	cells := r.Cells("engine", "keys")
	require.Len(t, cells, 4)
	one := func(i int, metric string) float64 {
		require.Len(t, r.Values(cells[i], metric), 1, metric)
		return r.Values(cells[i], metric)[0]
	}
	for i, cell := range cells {
		require.Equal(t, tidy.Of("engine", c.Engines[i/2], "keys", c.Sizes[i%2]), cell)
		for _, kind := range scaleKinds {
			times := r.Values(cell, kind)
			require.Len(t, times, 2)
			require.Positive(t, slices.Min(times))
		}
		require.Positive(t, one(i, "disk"))
		require.Positive(t, one(i, "dependent-load"))
	}
	require.InEpsilon(t, 10.0, 8*one(1, "filters")/float64(c.Sizes[1]), 0.05, "bits per key of filters")
	require.InEpsilon(t, 5, one(1, "filters")/one(0, "filters"), 0.05)
	require.Positive(t, one(1, "indexes"))
	require.Empty(t, r.Values(cells[2], "filters"), "bbolt has none")
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestSizes(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int{5000}, Sizes(5000))
	require.Equal(t, []int{300_000, 1_000_000}, Sizes(1_000_000))
	require.Equal(t, []int{300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000}, Sizes(30_000_000))
	require.Equal(t, []int{300_000, 1_000_000, 2_000_000}, Sizes(2_000_000))
}

func TestDependentLoadVisitsAllMemory(t *testing.T) {
	for _, bytes := range []int64{0, 1 << 10, 1 << 20} {
		require.Positive(t, DependentLoad(bytes))
	}
}

func TestScaleInterrupt(t *testing.T) {
	t.Parallel()
	interrupted(t, tinyScale(t), Scale)
}

func TestScaleUsage(t *testing.T) {
	t.Parallel()
	refused(t, tinyScale, Scale, map[string]func(c *Config){
		"--engine oracle":     func(c *Config) { c.Engines = []string{"oracle"} },
		"--engine: nothing":   func(c *Config) { c.Engines = nil },
		"--keys 10":           func(c *Config) { c.Sizes = []int{10} },
		"--compression zstd":  func(c *Config) { c.Store.Compression = "zstd" },
		"values of 1 bytes":   func(c *Config) { c.ValueSize = 1 },
		"keys of 1 bytes":     func(c *Config) { c.KeySize = 1 },
		"--memtable 1:":       func(c *Config) { c.Store.MemtableBytes = 1 },
		"--cache-share 0":     func(c *Config) { c.CacheShare = 0 },
		"--reps 0":            func(c *Config) { c.Repetitions = 0 },
		"--seconds 0":         func(c *Config) { c.Seconds = 0 },
		"--dir /nothing/here": func(c *Config) { c.Dir = "/nothing/here" },
		"choose fewer keys":   func(c *Config) { c.Sizes, c.ValueSize = []int{maxKeys}, 1<<20 },
	})
}
