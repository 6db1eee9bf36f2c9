package cell

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// exactMetrics returns what the result says is equal in two runs of a cell.
func exactMetrics(r *Result) string {
	var out []string
	for _, m := range r.Metrics {
		if m.Exact {
			out = append(out, fmt.Sprintf("%s %v", m.Name(), m.Value))
		}
	}
	return strings.Join(out, "\n")
}

func TestWorkersCountTheSameInTwoRuns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ engine, filter, shape, workload string }{
		{"siftkv", "bloom:8", Grown, Uniform},
		{"siftkv", "bloom:8", Settled, Zipfian},
		{"pebble-iterator", "own:10", Settled, Uniform},
	} {
		s := small()
		s.Engine, s.Filter, s.Shape, s.Workload, s.Threads, s.Cache = tc.engine, tc.filter, tc.shape, tc.workload, 4,
			64<<10
		t.Run(s.Name(), func(t *testing.T) {
			require.Contains(t, s.Name(), "-4-threads-")
			l := newLab(t)
			run := func(s Settings) *Result {
				r, err := l.Run(t.Context(), s)
				require.NoError(t, err)
				require.NoError(t, r.Identities.Err())
				return r
			}
			first := run(s)
			require.Equal(t, exactMetrics(first), exactMetrics(run(s)))
			for _, kind := range engine.Kinds {
				p := first.Phase(kind)
				require.Equal(t, 1200, p.Lookups, "the workers share the lookups")
				require.EqualValues(t, 300, p.Latency.Lookups)
				for _, rep := range p.Repetitions {
					require.Positive(t, rep.Wall)
					require.LessOrEqual(t, rep.Nanos, 4*rep.Wall, "no worker takes longer than all")
				}
				disk := first.Metric(string(kind), "disk-blocks/op")
				require.False(t, disk.Exact, "which of two workers finds a block in the cache is chance")
				require.Len(t, disk.Samples, 2)
				rate := first.Metric(string(kind), "lookups/s")
				require.Len(t, rate.Samples, 2)
				require.InEpsilon(t, 600e9/float64(p.Repetitions[0].Wall), rate.Samples[0], 1e-9)
			}
			levels := map[string]int{} // by unit
			for _, m := range first.Metrics {
				switch m.Unit {
				case "filter-checks/op":
					require.True(t, m.Exact, "of level %q", m.Level)
				case "disk-blocks/op":
					require.False(t, m.Exact, "of level %q", m.Level)
				default:
					continue
				}
				if m.Level != "" {
					levels[m.Unit]++
				}
			}
			if tc.engine == "siftkv" {
				require.Positive(t, levels["filter-checks/op"])
				require.Positive(t, levels["disk-blocks/op"])
			}
			if first.Absent.Counters.Total.BytesFromDisk.Known() {
				require.Positive(t, first.Existing.Counters.Total.BytesFromDisk)
			}
			s.Seed = 2
			require.NotEqual(t, exactMetrics(first), exactMetrics(run(s)))
		})
	}
}

// TestALevelHasEachCountOfSomeRepetition has a level that reads from disk in the last of three repetitions.
func TestALevelHasEachCountOfSomeRepetition(t *testing.T) {
	t.Parallel()
	w := &passes{histogram: measure.NewHistogram()}
	for _, disk := range []engine.Count{0, 0, 4} {
		levels := []engine.Tally{{}, {FilesConsidered: 10, BlocksFromDisk: disk}}
		w.reps = append(w.reps, measure.Repetition{Lookups: 10,
			Counters: engine.Counters{Total: levels[1], Levels: levels}})
	}
	var p Phase
	w.summarise(&p, 1)
	s := small()
	s.Threads = 2
	metrics := phaseMetrics(engine.Absent, &p, s)
	disk := tidy.Find(metrics, "1", string(engine.Absent), "disk-blocks/op")
	require.NotNil(t, disk)
	require.Equal(t, []float64{0, 0, 0.4}, disk.Samples)
	require.Zero(t, disk.Value, "the median")
	require.NotNil(t, tidy.Find(metrics, "1", string(engine.Absent), "files/op"))
	require.Nil(t, tidy.Find(metrics, "1", string(engine.Absent), "negatives/op"), "there are none")
	require.Nil(t, tidy.Find(metrics, "1", string(engine.Absent), "decoded-bytes/op"), "in no repetition")
	require.Nil(t, tidy.Find(metrics, "0", string(engine.Absent), "files/op"))
}

func TestAllCountersAreEqualOnceEverythingIsCached(t *testing.T) {
	t.Parallel()
	s := small()
	s.Threads, s.Filter, s.Cache, s.Lookups = 3, "bloom:6", 16<<20, 3000 // every key, in the warm-up already
	l := newLab(t)
	var before string
	for range 3 {
		r, err := l.Run(t.Context(), s)
		require.NoError(t, err)
		require.Zero(t, r.Absent.Counters.Total.BlocksFromDisk)
		require.Zero(t, r.Existing.Counters.Total.BlocksFromDisk)
		if before != "" {
			require.Equal(t, before, exact(r))
		}
		before = exact(r)
	}
}

func TestWorkersAskForTheKeysOfOne(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	counts := map[string]string{}
	for _, threads := range []int64{1, 2, 7} {
		s := small()
		s.Threads, s.Filter, s.Shape, s.Cache = threads, "bloom:6", Young+":3", 16<<20 // everything fits
		var before string
		for range 2 {
			r, err := l.Run(t.Context(), s)
			require.NoError(t, err)
			for _, m := range r.Metrics {
				if m.Kind != StoreKind && !m.Exact && threads == 1 {
					require.NotEmpty(t, m.Samples, "%s is a time", m.Name())
				}
			}
			filters := fmt.Sprint(r.Absent.Counters.Total.FalsePositives, r.Existing.Counters.Total.FilterChecks)
			counts[filters] = ""
			if before != "" {
				require.Equal(t, before, exactMetrics(r))
			}
			before = exactMetrics(r)
		}
	}
	require.Len(t, counts, 1, "the same lookups however many workers there are: %v", counts)

	s := small()
	s.Threads = 0
	require.ErrorIs(t, s.Check(), bench.ErrUsage)
	s.Threads = 300
	r, err := l.Run(t.Context(), s)
	require.ErrorContains(t, err, "threads 300: want 1 to 256")
	require.Nil(t, r)
	s.Threads, s.Lookups, s.Reps = 16, 5, 1 // some have nothing to do
	r, err = l.Run(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, 5, r.Absent.Lookups)
	require.Equal(t, runtime.GOMAXPROCS(0) < 16, strings.Contains(strings.Join(r.Warnings, "\n"), "16 workers share "))
}
