package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/golden"
)

func TestRangesGolden(t *testing.T) {
	r := tidy.New("ranges", "Range filters on their own: space, errors, time; up to 100,000 empty ranges of each "+
		"kind, medians of 3 repetitions, seed 1", nil, sample()[0].Environment)
	r.WallSeconds = 12.3
	one := func(x float64) []float64 { return []float64{x} }
	set := tidy.Of("set", "random", "keys", 1_000_000)
	addAll(r, set, metricRow{"key-size", one(16)})
	add := func(filter string, size, passed float64) {
		rate := passed / 100_000
		of := set.With("filter", filter)
		addAll(r, of, metricRow{"size", one(size)}, metricRow{"theory-size", one(size + 0.01)},
			metricRow{"theory-rate", one(0.0113)}, metricRow{"build", one(75.04)}, metricRow{"point-build", one(30)})
		addAll(r, of.With("ranges", "2 units, anywhere"), metricRow{"asked", one(100_000)},
			metricRow{"rate", one(rate)}, metricRow{"rate-low", one(0.9 * rate)},
			metricRow{"rate-high", one(1.1 * rate)}, metricRow{"query", one(164.2)})
		addAll(r, of.With("ranges", "1 gap, anywhere"), metricRow{"asked", one(0)})
	}
	add("cut:4", 10.83, 4508)
	add("cut:6", 12.79, 1127)
	var out bytes.Buffer
	require.NoError(t, Tidy(&out, r))
	golden.File(t, "testdata/ranges.txt", out.Bytes())
}

func TestRangesWithoutSomeRowsAreShown(t *testing.T) {
	t.Parallel()
	r := tidy.New("ranges", "about", nil, sample()[0].Environment)
	set := tidy.Of("set", "random", "keys", 10)
	addAll(r, set, metricRow{"key-size", []float64{16}})
	require.Empty(t, TidyGrids(r))
	addAll(r, set.With("filter", "cut:4"), metricRow{"size", []float64{10}})
	require.Empty(t, TidyGrids(r), "no ranges were asked for")
}
