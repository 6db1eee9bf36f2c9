package compare

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/internal/scale"
)

func tinyScale(t *testing.T) *ScaleConfig {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return &ScaleConfig{
		Engines: []string{"siftkv", "bbolt"}, Sizes: []int{2000, 10_000},
		ScaleSettings: ScaleSettings{
			KeySize: 16, ValueSize: 100, CacheShare: 0.5, Repetitions: 2, Seconds: 0.002, Seed: 1,
			Store: engine.Settings{MemtableBytes: 1 << 20, BlockBytes: 4096, Compression: "snappy", Compactions: 1},
		},
		Setup: Setup{Dir: t.TempDir(), Progress: progress.New(io.Discard, "none"),
			Worker: []string{self, "worker", ""}},
	}
}

func TestPoints(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "lookups of one goroutine")
	c := tinyScale(t)
	r, err := Scale(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, r.Points, 4)
	for i, p := range r.Points {
		require.Equal(t, c.Engines[i/2], p.Engine)
		require.Equal(t, c.Sizes[i%2], p.Keys)
		for _, x := range []Time{p.Absent, p.Existing, p.Zipfian} {
			require.Positive(t, x.Low)
			require.LessOrEqual(t, x.Low, x.Median)
			require.LessOrEqual(t, x.Median, x.High)
		}
		require.Positive(t, p.DiskBytes)
		require.Positive(t, p.LoadNs)
	}
	small, large := r.Points[0], r.Points[1]
	require.InEpsilon(t, 10.0, 8*float64(large.Filters)/float64(large.Keys), 0.05, "bits per key of filters")
	require.InEpsilon(t, 5, float64(large.Filters)/float64(small.Filters), 0.05)
	require.Positive(t, large.Indexes)
	require.Zero(t, r.Points[2].Filters, "bbolt has none")
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
	c := tinyScale(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Scale(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestScaleUsage(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(c *ScaleConfig){
		"--engine oracle":     func(c *ScaleConfig) { c.Engines = []string{"oracle"} },
		"--engine: nothing":   func(c *ScaleConfig) { c.Engines = nil },
		"--keys 10":           func(c *ScaleConfig) { c.Sizes = []int{10} },
		"--compression zstd":  func(c *ScaleConfig) { c.Store.Compression = "zstd" },
		"values of 1 bytes":   func(c *ScaleConfig) { c.ValueSize = 1 },
		"keys of 1 bytes":     func(c *ScaleConfig) { c.KeySize = 1 },
		"--memtable 1:":       func(c *ScaleConfig) { c.Store.MemtableBytes = 1 },
		"--cache-share 0":     func(c *ScaleConfig) { c.CacheShare = 0 },
		"--reps 0":            func(c *ScaleConfig) { c.Repetitions = 0 },
		"--seconds 0":         func(c *ScaleConfig) { c.Seconds = 0 },
		"--dir /nothing/here": func(c *ScaleConfig) { c.Dir = "/nothing/here" },
	} {
		c := tinyScale(t)
		change(c)
		_, err := Scale(t.Context(), c)
		require.ErrorIs(t, err, bench.ErrUsage, want)
		require.ErrorContains(t, err, want)
	}
}
