package compare

import (
	"slices"
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
		of = append(of, e.phases...)
	}
	for _, p := range phases {
		if p.stage == ownStore {
			all = append(all, p.Name)
		}
	}
	require.ElementsMatch(t, all, of)
}

// TestExperimentsAlone loads no other stores, and repeats as loads are repeated.
func TestExperimentsAlone(t *testing.T) {
	t.Parallel()
	c := tiny(t, "")
	c.Engines, c.Loads = []string{"siftkv", "pebble", "bbolt"}, 2
	c.Workloads = []string{"overwrite", "delete-range", "counter-get", "limit"}
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, r.Loads)
	var names []string
	for _, p := range r.Phases {
		names = append(names, p.Name)
		require.Len(t, p.Engines[0].Samples, 2, p.Name)
		require.Len(t, p.Engines[1].Samples, 2, p.Name)
		if p.Name == "delete-range" {
			require.Empty(t, p.Engines[2].Samples, "bbolt has no range tombstones")
			continue
		}
		require.Len(t, p.Engines[2].Samples, 1, p.Name)
	}
	require.Equal(t, c.Workloads, names)
	require.Len(t, r.Figures, 4)
	figure := func(name string) Figure {
		return r.Figures[slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Name == name })]
	}
	for _, e := range figure("overwritten").Engines {
		require.Greater(t, e.Median, 1.0, "%s writes a log and files", e.Engine)
		require.Less(t, e.Median, 60.0, e.Engine)
	}
	for _, e := range figure("overwritten-space").Engines[:2] {
		require.Greater(t, e.Median, 0.5, e.Engine)
	}
	for _, e := range figure("limit").Engines {
		require.InDelta(t, 4, e.Median, 1e-9, "MiB, the least")
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
