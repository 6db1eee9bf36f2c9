package chart

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

func TestEveryChartHasAHeadline(t *testing.T) {
	t.Parallel()
	set, labels := samples()
	heads := map[string]string{}
	for _, c := range All(set, labels) {
		heads[c.ID] = c.Headline
	}
	require.Equal(t, map[string]string{
		"blocks-absent":    "siftkv blocked:12 reads 1 block in 250 absent lookups.",
		"blocks-existing":  "siftkv none reads 1 block per existing lookup.",
		"fpr":              "siftkv blocked:12 lets 1 absent key in 250 probes pass.",
		"funnel-absent":    "siftkv none considers 1 file per absent lookup, and reads 1 block per absent lookup.",
		"funnel-existing":  "siftkv none considers 1 file per existing lookup, and reads 1 block per existing lookup.",
		"latency-absent":   "siftkv none answers 99 of 100 absent lookups within 1.19 µs.",
		"latency-existing": "siftkv none answers 99 of 100 existing lookups within 1.14 µs.",
		"pareto":           "siftkv blocked:12 reads 1 block in 250 absent lookups with 12 filter bits per key.",
		"ratios":           "Fewest blocks for an absent key: siftkv blocked:12.",
		"times":            "Least time for an absent key, 215 ns: siftkv none.",
	}, heads)
}

// TestHeadlinesOfTies has cells that share the first place. None of them sees a false positive, which says no more than
// that the rate is within its interval. The oracle has less and does not count.
func TestHeadlinesOfTies(t *testing.T) {
	t.Parallel()
	store := cell.Result{Metrics: []cell.Metric{
		{Kind: "absent", Unit: "blocks/op"}, {Kind: "absent", Unit: "fpr"}, {Kind: "absent", Unit: "ns/op", Value: 2},
	}}
	store.Absent.FPR = &measure.Rate{High: 0.001}
	oracle := cell.Result{Metrics: []cell.Metric{{Kind: "absent", Unit: "ns/op", Value: 1}}}
	oracle.Settings.Filter = engine.OracleFilter
	set := []*cell.Result{&store, &oracle, &store, &store}
	heads := headlines(set, []string{"a", "oracle", "b", "c"})
	require.Equal(t, "Fewest blocks for an absent key: a and 2 others.", heads["ratios"])
	require.Equal(t, "Least time for an absent key, 2 ns: a and 2 others.", heads["times"])
	require.Equal(t, "a reads no block in any absent lookup.", heads["blocks-absent"])
	require.Equal(t, "a lets at most 1 absent key in 1000 probes pass.", heads["fpr"])
	require.Empty(t, heads["latency-absent"], "there is no such metric")
}

func TestHowOftenSomethingHappens(t *testing.T) {
	t.Parallel()
	for perLookup, want := range map[float64]string{
		0: "no block in any absent lookup", 0.01: "1 block in 100 absent lookups",
		0.0007: "1 block in 1429 absent lookups", 1.001: "1 block per absent lookup",
		2.25: "2.25 blocks per absent lookup",
	} {
		require.Equal(t, want, often(perLookup, "block", "absent lookup"))
	}
	for ns, want := range map[float64]string{320: "320 ns", 3210: "3.21 µs", 1.5: "1.5 ns"} {
		require.Equal(t, want, nanoseconds(ns))
	}
}
