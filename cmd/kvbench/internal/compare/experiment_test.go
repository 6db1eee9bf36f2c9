package compare

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

func TestHolesCountWhatTheyHave(t *testing.T) {
	t.Parallel()
	for _, h := range []hole{pointHole, rangeHole} {
		n := 20 * h.period
		var ranks []int
		for rank := range n {
			if h.has(rank) {
				ranks = append(ranks, rank)
			}
		}
		require.Len(t, ranks, h.count(n))
		for i, rank := range ranks {
			require.Equal(t, rank, h.rank(i))
		}
	}
	require.False(t, hole{}.has(0))
}

// Every phase of a store of its own is in one experiment.
func TestExperimentsHaveThePhases(t *testing.T) {
	t.Parallel()
	var of, all []string
	for _, e := range experiments {
		for _, s := range e.Steps {
			if s.Phase != "" {
				of = append(of, s.Phase)
			}
		}
	}
	for _, p := range phases {
		if p.Stage == ownStore {
			all = append(all, p.Name)
		}
	}
	require.ElementsMatch(t, all, of)
}

// TestFiguresAreMadeOfFields finds a field of a figure, and a stage and a way of the file, that there is not.
func TestFiguresAreMadeOfFields(t *testing.T) {
	t.Parallel()
	fields := []string{"", "data"}
	for field := range reflect.TypeFor[Sample]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	for _, f := range Figures {
		require.NotEmpty(t, f.Of, f.Name)
		require.Subset(t, fields, []string{f.Of, f.Less, f.Per}, f.Name)
		require.Contains(t, Workloads(), f.Phase, f.Name)
	}
	stages := slices.Concat(reading, writing, []stage{loading, unsettled, fresh, ownStore})
	for _, p := range phases {
		require.Contains(t, stages, p.Stage, p.Name)
		if p.Stage == durable {
			require.Equal(t, writers, p.Threads, "stores are opened for that many")
		}
	}
	for _, e := range experiments {
		for _, s := range e.Steps {
			require.Contains(t, []string{"fill", "rewrite", "do", "ask", "size"}, s.How, s.Phase)
		}
	}
}

func TestFiguresAreInTheirUnits(t *testing.T) {
	t.Parallel()
	s := Sample{Operations: 4, CPUSeconds: 0.5, Seconds: 0.25, P50: 9, P999: 9, LongestBatch: 9, Base: 2 << 20,
		Peak: 3 << 20, Resident: 7 << 20, Anon: 1 << 19, Data: 8 << 20, Live: 4 << 20, Written: 1 << 20}
	want := map[string]float64{"load-cpu": 125_000, "open": 250, "p50": 9 / 1e3, "p99.9": 9 / 1e3, "stall": 9 / 1e6,
		"load-peak": 1, "large-peak": 1, "limit-peak": 1, "rss": 5, "rss-anon": 0.5, "limit": 8, "large-written": 0.125}
	for _, f := range Figures {
		require.Equal(t, f.Unit == "MiB", f.By == 1<<20, f.Name)
		if x, ok := want[f.Name]; ok {
			require.InDelta(t, x, f.value(s.fields()), 0, f.Name)
			delete(want, f.Name)
		}
	}
	require.Empty(t, want, "there is no such figure")
}

// TestExperimentsAlone loads no other stores, and repeats as loads are repeated.
func TestExperimentsAlone(t *testing.T) {
	t.Parallel()
	c := tiny(t, "")
	c.Engines, c.Loads = []string{"siftkv", "pebble", "bbolt"}, 2
	c.Workloads = []string{"overwrite", "delete-range", "counter-get", "limit"}
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, r.Cells("engine", "compression"), "no load")
	require.ElementsMatch(t, c.Workloads, r.Each("workload"))
	for _, name := range c.Workloads {
		samples := func(engine string) []float64 { return r.Values(Cell(name, "snappy", engine), "operations") }
		require.Len(t, samples("siftkv"), 2, name)
		require.Len(t, samples("pebble"), 2, name)
		if name == "delete-range" {
			require.Empty(t, samples("bbolt"), "bbolt has no range tombstones")
			continue
		}
		require.Len(t, samples("bbolt"), 1, name)
	}
	for e, x := range medians(t, r, "overwritten") {
		require.Greater(t, x, 1.0, "%s writes a log and files", e)
		require.Less(t, x, 60.0, e)
	}
	space := medians(t, r, "overwritten-space")
	require.Greater(t, space["siftkv"], 0.5)
	require.Greater(t, space["pebble"], 0.5)
	for _, x := range medians(t, r, "limit") {
		require.InDelta(t, 4, x, 1e-9, "MiB, the least")
	}
}

func TestAWrongAnswerInAnExperimentEndsTheRun(t *testing.T) {
	t.Parallel()
	for _, f := range [][2]string{{"forgetful", "large-get"}, {"forgetful", "counter-get"}, {"forgetful", "limit"},
		{"skipping", "deleted-scan"}, {"losing", "large-scan"}, {"stale", "large-overwrite"},
		{"keyless", "large-keys"}} {
		c := tiny(t, f[0])
		c.Workloads = []string{f[1]}
		_, err := Run(t.Context(), c)
		require.ErrorIs(t, err, bench.ErrWrongAnswer, "%q", f)
	}
}

func TestCountersOfAStoreWithoutMerge(t *testing.T) {
	w := &worker{}
	start := &startTask{Engine: "bbolt", Dir: []byte(t.TempDir()), Keys: 100, KeySize: 16, ValueSize: 100}
	_, err := w.do(t.Context(), task{Do: "start", Start: start})
	require.NoError(t, err)
	_, err = w.do(t.Context(), opening(engine.Settings{BatchKeys: 1}))
	require.NoError(t, err)
	s, err := w.do(t.Context(), task{Do: "job", Job: &job{Kind: "add", Lookups: 350}})
	require.NoError(t, err)
	require.EqualValues(t, 350, s.Operations)
	_, err = w.do(t.Context(), task{Do: "job", Job: &job{Kind: "counters"}})
	require.NoError(t, err, "every counter has its sum")
	w.totals[7]++
	_, err = w.do(t.Context(), task{Do: "job", Job: &job{Kind: "counters"}})
	require.ErrorIs(t, err, bench.ErrWrongAnswer)
	_, err = w.do(t.Context(), task{Do: "job", Job: &job{Kind: "delete-ranges"}})
	require.ErrorContains(t, err, "no range tombstones")
	require.NoError(t, w.close())
}
