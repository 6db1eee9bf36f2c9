package ycsb

import (
	"io"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

func small(t *testing.T) *Config {
	t.Helper()
	return &Config{
		Engines: []string{"siftkv"}, Workloads: Names,
		Settings: Settings{
			Keys: 2000, KeySize: 16, ValueSize: 100, Operations: 1000, Workers: 3, Seed: 1,
			Store: engine.Settings{CacheBytes: 1 << 20, MemtableBytes: 256 << 10, BlockBytes: 4096,
				Compression: "snappy", Compactions: 1, BatchKeys: 100},
		},
		Dir: t.TempDir(), Progress: progress.New(io.Discard, "none"),
	}
}

func TestEveryWorkloadOnEveryEngine(t *testing.T) {
	c := small(t)
	c.Engines = Engines()
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, r.Cells("engine", "workload"), len(c.Engines)*len(Names))
	told := map[string]int64{}
	for _, line := range r.Timelines {
		for _, n := range line.Operations {
			told[line.Cell["engine"]+line.Cell["workload"]] += n
		}
	}
	total := map[string]int64{}
	for _, of := range r.Cells("engine", "workload", "operation") {
		get := func(metric string) float64 { return r.Values(of, metric)[0] }
		m, verb := Mixes[of["workload"]], of["operation"]
		total[of["engine"]+of["workload"]] += int64(get("count"))
		require.Positive(t, get("p50"))
		require.LessOrEqual(t, get("p50"), get("p99"))
		require.LessOrEqual(t, get("p99.99"), get("max"))
		share := m.Share
		if verb != m.First.String() {
			require.Equal(t, m.Other.String(), verb)
			share = 1 - share
		}
		// Five standard deviations of a binomial.
		require.InDelta(t, share*1000, get("count"), 5*math.Sqrt(1000*share*(1-share))+1e-9, "%v", of)
	}
	require.Len(t, total, len(c.Engines)*len(Names))
	for of, n := range total {
		require.EqualValues(t, 1000, n, of)
	}
	require.Equal(t, total, told, "every operation is on the timeline")
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestTheTimelineHasWhatTheStoreDidMeanwhile(t *testing.T) {
	c := small(t)
	c.Engines, c.Workloads, c.Operations = []string{"siftkv", "pebble"}, []string{"c", "a"}, 20_000
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	for _, line := range r.Timelines {
		kinds := map[engine.BackgroundKind]int{}
		for _, e := range line.Events {
			kinds[e.Kind]++
		}
		require.Equal(t, line.Cell["workload"] == "a", kinds[engine.Flush] > 0,
			"%v: updates fill memtables, reads do not", line.Cell)
	}
}

// slow is a store that stops once, for a while.
type slow struct {
	engine.Live
	pause time.Duration
}

func (s slow) NewReader(a engine.Access, k engine.Kind) (engine.Reader, error) {
	r, err := s.Live.NewReader(a, k)
	return &slowReader{Reader: r, pause: s.pause}, err
}

type slowReader struct {
	engine.Reader
	n     int
	pause time.Duration
}

func (s *slowReader) Get(dst, key []byte) ([]byte, bool, error) {
	if s.n++; s.n == 100 {
		time.Sleep(s.pause)
	}
	return s.Reader.Get(dst, key)
}

// TestAPauseCountsForAllThatWereDue is what an open loop is for: a closed one sees one
// slow operation, and at a rate those that waited for it were slow as well.
func TestAPauseCountsForAllThatWereDue(t *testing.T) {
	c := small(t)
	c.Workloads, c.Workers, c.Operations = []string{"c"}, 1, 2000
	const pause = 100 * time.Millisecond
	c.Wrap = func(_ string, s engine.Live) engine.Live { return slow{s, pause} }
	c.Rate = 20_000 // 2,000 operations in 100 ms
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	get := func(metric string) float64 { return r.Values(Cell("siftkv", "c").With("operation", Read), metric)[0] }
	require.Greater(t, get("p50"), float64(pause/10), "half of them and more waited")
	require.Less(t, get("service p50"), get("p50")/10)
	require.GreaterOrEqual(t, get("service max"), float64(pause)*99/100)
}

// forgetful loses every key.
type forgetful struct{ engine.Live }

func (f forgetful) NewReader(a engine.Access, k engine.Kind) (engine.Reader, error) {
	r, err := f.Live.NewReader(a, k)
	return forgetfulReader{r}, err
}

type forgetfulReader struct{ engine.Reader }

func (forgetfulReader) Get(dst, _ []byte) ([]byte, bool, error) { return dst, false, nil }

// skipping leaves out the first entry of each scan.
type skipping struct{ engine.Live }

func (s skipping) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	return s.Live.Scan(append(slices.Clip(start), 0), limit, visit)
}

func TestAWrongAnswerEndsTheRun(t *testing.T) {
	for workload, wrap := range map[string]func(string, engine.Live) engine.Live{
		"a": func(_ string, s engine.Live) engine.Live { return forgetful{s} },
		"e": func(_ string, s engine.Live) engine.Live { return skipping{s} },
	} {
		c := small(t)
		c.Workloads, c.Wrap = []string{workload}, wrap
		_, err := Run(t.Context(), c)
		require.ErrorIs(t, err, bench.ErrWrongAnswer, workload)
	}
}

func TestFrontierIsWhatIsThereWithoutHoles(t *testing.T) {
	f := NewFrontier(10, 13)
	for want := 10; want < 13; want++ {
		n, ok := f.take()
		require.True(t, ok)
		require.Equal(t, want, n)
	}
	_, ok := f.take()
	require.False(t, ok)
	f.inserted(12)
	f.inserted(11)
	require.Equal(t, 10, f.Records())
	f.inserted(10)
	require.Equal(t, 13, f.Records())
}

func TestWrongSettings(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.Engines = []string{"pebble-iterator"} }, func(c *Config) { c.Workloads = []string{"z"} },
		func(c *Config) { c.Workloads = nil }, func(c *Config) { c.Keys = 1 }, func(c *Config) { c.Workers = 0 },
		func(c *Config) { c.Rate = -1 }, func(c *Config) { c.Operations = 0 }, func(c *Config) { c.Dir = "/nothing" },
		func(c *Config) { c.ValueSize = 1 }, func(c *Config) { c.Store.Compression = "lz4" },
	} {
		c := small(t)
		change(c)
		_, err := Run(t.Context(), c)
		require.ErrorIs(t, err, bench.ErrUsage)
	}
}
