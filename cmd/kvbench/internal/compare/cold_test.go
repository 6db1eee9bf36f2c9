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

func tinyCold(t *testing.T) *ColdConfig {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	most, lookups := 9000, 300
	if scale.Long() {
		most, lookups = 15_000, 600
	}
	return &ColdConfig{
		ColdSettings: ColdSettings{
			Engines: []string{"siftkv", "pebble", "bbolt"}, Sizes: []int{1000, most},
			Variants: []string{UsualVariant, "ribbon:12", "budget:6+index:4KiB"},
			KeySize:  16, ValueSize: 1000, Memory: 4 << 20, Lookups: lookups, Seed: 1,
			Store: engine.Settings{BlockBytes: 4096, Compression: "none", Compactions: 1},
		},
		Setup: Setup{Dir: t.TempDir(), Progress: progress.New(io.Discard, "none"),
			Worker: []string{self, "worker", ""}},
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
	for i := range r.Points {
		p := &r.Points[i]
		names = append(names, p.Name())
		require.Positive(t, p.WrittenBytes, p.Name())
		require.GreaterOrEqual(t, p.PeakDisk, p.In(TreeSettled).DiskBytes, p.Name())
		for _, s := range p.States {
			require.EqualValues(t, c.Lookups, s.Absent.Lookups, p.Name())
			require.EqualValues(t, c.Lookups, s.Existing.Lookups, p.Name())
			require.LessOrEqual(t, s.Existing.P50, s.Existing.P99)
			require.Positive(t, s.OpenSeconds)
		}
	}
	require.Equal(t, []string{"siftkv", "pebble", "bbolt", "siftkv", "siftkv ribbon:12", "siftkv budget:6+index:4KiB",
		"pebble", "bbolt"}, names)

	large := map[string]*ColdPoint{}
	for i := range r.Points[3:] {
		p := &r.Points[3+i]
		large[p.Name()] = p
	}
	usual := large["siftkv"].In(TreeSettled)
	require.EqualValues(t, c.Sizes[1], usual.Shape.Entries)
	require.Equal(t, 1, usual.Shape.Runs)
	require.Greater(t, usual.Existing.Per(usual.Existing.Reads.Files.Calls), 0.5, "most blocks are not in memory")
	require.Less(t, usual.Existing.Per(usual.Existing.Reads.Files.Calls), 1.1, "a lookup reads one")
	require.Less(t, usual.Absent.Per(usual.Absent.Reads.Files.Calls), 0.1, "filters keep most from reading")
	require.Greater(t, usual.Existing.Reads.Files.Bytes, 1000*usual.Existing.Reads.Files.Calls)
	if usual.Existing.Reads.DeviceBytes.Known() {
		require.GreaterOrEqual(t, usual.Existing.Reads.DeviceBytes, usual.Existing.Reads.Files.Bytes*9/10,
			"what is read comes from the device")
	}
	require.InDelta(t, 10, usual.Shape.BitsPerKey(), 1)
	ribbon, budget := large["siftkv ribbon:12"].In(TreeSettled), large["siftkv budget:6+index:4KiB"].In(TreeSettled)
	lastLayers := 100 * 12 * float64(ribbon.Shape.Files) / float64(ribbon.Shape.Entries) // see package ribbon
	require.InDelta(t, 1.005*12+lastLayers, ribbon.Shape.BitsPerKey(), 1)
	require.Less(t, budget.Shape.BitsPerKey(), 8.0)
	require.Less(t, budget.Usage.IndexMemory, usual.Usage.IndexMemory, "leaves of indexes are on disk")

	pebble := large["pebble"]
	require.Len(t, pebble.States, 4, "two trees, asked in two ways")
	byGet, byIterator := pebble.States[2], pebble.States[3]
	require.Equal(t, engine.PebbleIteratorName, byIterator.Engine)
	require.Less(t, 2*byIterator.Absent.Reads.Files.Calls, byGet.Absent.Reads.Files.Calls,
		"filters of the last level")
	require.False(t, large["bbolt"].States[0].Absent.Reads.Files.Calls.Known(), "a memory map is not counted")

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
	c := tinyCold(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Cold(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
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
	for want, change := range map[string]func(c *ColdConfig){
		"--engine oracle":               func(c *ColdConfig) { c.Engines = []string{"oracle"} },
		"--engine: nothing":             func(c *ColdConfig) { c.Engines = nil },
		"--keys 10:":                    func(c *ColdConfig) { c.Sizes = []int{10} },
		"--compression zstd":            func(c *ColdConfig) { c.Store.Compression = "zstd" },
		"values of 1 bytes":             func(c *ColdConfig) { c.ValueSize = 1 },
		"--memory 1:":                   func(c *ColdConfig) { c.Memory = 1 },
		"--lookups 0:":                  func(c *ColdConfig) { c.Lookups = 0 },
		"--variant: nothing":            func(c *ColdConfig) { c.Variants = nil },
		"--variant budget:x: budget:x":  func(c *ColdConfig) { c.Variants = []string{"budget:x"} },
		"--variant index: ":             func(c *ColdConfig) { c.Variants = []string{"index"} },
		"--variant sieve:1: sieve:1":    func(c *ColdConfig) { c.Variants = []string{"sieve:1"} },
		"budget:0: want more than 0":    func(c *ColdConfig) { c.Variants = []string{"bloom:8+budget:0"} },
		"--dir /nothing/here":           func(c *ColdConfig) { c.Dir = "/nothing/here" },
		"free; choose fewer keys, or":   func(c *ColdConfig) { c.Sizes, c.ValueSize = []int{maxKeys}, 1<<20 },
		"--keys 1073741824: the store ": func(c *ColdConfig) { c.Sizes, c.ValueSize = []int{maxKeys}, 1<<20 },
	} {
		c := tinyCold(t)
		dir := c.Dir
		change(c)
		_, err := Cold(t.Context(), c)
		require.ErrorIs(t, err, bench.ErrUsage, want)
		require.ErrorContains(t, err, want)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}
