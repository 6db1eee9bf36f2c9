package compare

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

func tinyContend(t *testing.T) *Config {
	t.Helper()
	return &Config{
		Settings: Settings{
			Engines: []string{"siftkv", "pebble"}, Procs: []int{1, 4}, Goroutines: []int{1, 30}, Keys: 2000,
			KeySize: 16, ValueSize: 100, Repetitions: 2, Seconds: 0.001, Seed: 1,
			Store: engine.Settings{MemtableBytes: 1 << 20, BlockBytes: 4096, Compression: "none", Compactions: 1},
		},
		Setup: tinySetup(t, ""),
	}
}

func TestContend(t *testing.T) {
	t.Parallel()
	c := tinyContend(t)
	r, err := Contend(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, r.Cells("workload", "compression", "engine", "gomaxprocs", "goroutines"), 3*2*2*2)
	require.Equal(t, c.Engines, r.Each("engine"), "in the order of the tables")
	require.Equal(t, []string{"1", "4"}, r.Each("gomaxprocs"))
	require.Equal(t, []string{"1", "30"}, r.Each("goroutines"))
	for _, work := range ContendWorks {
		for _, name := range c.Engines {
			for _, procs := range c.Procs {
				for _, n := range c.Goroutines {
					of := Cell(work, "none", name).With("gomaxprocs", procs, "goroutines", n)
					require.Len(t, r.Values(of, PerSecond), 2)
					require.Positive(t, slices.Min(r.Values(of, PerSecond)))
					require.Len(t, r.Values(of, LockWait), 2)
					require.GreaterOrEqual(t, slices.Min(r.Values(of, LockWait)), 0.0)
				}
			}
		}
	}
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestContendIsUnderItsProcessorsOnly(t *testing.T) {
	w := &worker{}
	start := &startTask{Engine: "siftkv", Dir: []byte(t.TempDir()), Keys: 1000, KeySize: 16, ValueSize: 100}
	_, err := w.do(t.Context(), task{Do: "start", Start: start})
	require.NoError(t, err)
	_, err = w.do(t.Context(), opening(engine.Settings{Compression: "none", MemtableBytes: 1 << 20, BlockBytes: 4096,
		CacheBytes: 1 << 20, Compactions: 1, BatchKeys: 100}))
	require.NoError(t, err)
	_, err = w.do(t.Context(), task{Do: "load"})
	require.NoError(t, err)
	_, err = w.do(t.Context(), task{Do: "settle"})
	require.NoError(t, err)
	before := runtime.GOMAXPROCS(0)
	var seen sync.Map
	w.store = watching{w.store, func() { seen.Store(runtime.GOMAXPROCS(0), true) }}
	_, err = w.do(t.Context(), task{Do: "job", Job: &job{Kind: "set", Threads: 3, Procs: before + 5}})
	require.NoError(t, err)
	_, ok := seen.Load(before + 5)
	require.True(t, ok)
	require.Equal(t, before, runtime.GOMAXPROCS(0), "put back")
	require.NoError(t, w.close())
}

// watching calls a function with every write.
type watching struct {
	engine.Live
	saw func()
}

func (w watching) Set(key, value []byte) error {
	w.saw()
	return w.Live.Set(key, value)
}

func TestContendWrongAnswer(t *testing.T) {
	t.Parallel()
	c := tinyContend(t)
	c.Worker[2] = "forgetful"
	_, err := Contend(t.Context(), c)
	require.ErrorIs(t, err, bench.ErrWrongAnswer)
}

func TestContendInterrupt(t *testing.T) {
	t.Parallel()
	interrupted(t, tinyContend(t), Contend)
}

func TestContendUsage(t *testing.T) {
	t.Parallel()
	refused(t, tinyContend, Contend, map[string]func(c *Config){
		"--engine oracle":           func(c *Config) { c.Engines = []string{"oracle"} },
		"--engine: nothing":         func(c *Config) { c.Engines = nil },
		"--engine pebble-iterator":  func(c *Config) { c.Engines = []string{"pebble-iterator"} },
		"--keys 10":                 func(c *Config) { c.Keys = 10 },
		"--compression zstd":        func(c *Config) { c.Store.Compression = "zstd" },
		"values of 1 bytes":         func(c *Config) { c.ValueSize = 1 },
		"--block 1:":                func(c *Config) { c.Store.BlockBytes = 1 },
		"--procs 0":                 func(c *Config) { c.Procs = []int{0} },
		"--goroutines 9999":         func(c *Config) { c.Goroutines = []int{9999} },
		"--procs: 1 is given twice": func(c *Config) { c.Procs = []int{1, 1} },
		"--goroutines: nothing":     func(c *Config) { c.Goroutines = nil },
		"--reps 0":                  func(c *Config) { c.Repetitions = 0 },
		"--seconds 0":               func(c *Config) { c.Seconds = 0 },
		"--dir /nothing/here":       func(c *Config) { c.Dir = "/nothing/here" },
	})
}
