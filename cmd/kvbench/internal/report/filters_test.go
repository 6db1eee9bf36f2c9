package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/filters"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/golden"
)

// A metricRow is numbers of a metric.
type metricRow struct {
	metric string
	values []float64
}

// addAll adds rows of a cell.
func addAll(r *tidy.Result, of tidy.Cell, rows ...metricRow) {
	for _, row := range rows {
		r.Add(of, row.metric, "", row.values...)
	}
}

func TestFiltersGolden(t *testing.T) {
	r := tidy.New("filters", "Filters on their own: space, errors, time; 1,000,000 absent probes, medians of 3 "+
		"repetitions, seed 1", nil, sample()[0].Environment)
	r.WallSeconds = 12.3
	one := func(x ...float64) []float64 { return x }
	add := func(filter string, size, fpr, low, high, build, bytes, present, absent, small, smallAbsent, many float64) {
		addAll(r, tidy.Of("keys", 1_000_000, "filter", filter), metricRow{"size", one(size)},
			metricRow{"fpr", one(fpr)}, metricRow{"fpr-low", one(low)}, metricRow{"fpr-high", one(high)},
			metricRow{"build", one(build-1, build, build+7)}, metricRow{"build-bytes", one(bytes)},
			metricRow{"present", one(present)}, metricRow{"absent", one(absent)},
			metricRow{"small-present", one(small)}, metricRow{"small-absent", one(smallAbsent)},
			metricRow{"many-absent", one(many)})
	}
	add("blocked:10", 10.0003, 0.0096, 0.0094, 0.0098, 12.34, 9.2, 20.5, 15, 11, 9.5, 1234.5)
	addAll(r, tidy.Of("keys", 1_000_000, "filter", "blocked:10"), metricRow{"theory-size", one(10)},
		metricRow{"theory-fpr", one(0.00965)})
	add(filters.Pebble, 8.5, 0.03, 0.0299, 0.0301, 123.4, 65, 100, 99.94, 30, 29, 900)
	var out bytes.Buffer
	require.NoError(t, Tidy(&out, r))
	golden.File(t, "testdata/filters.txt", out.Bytes())
}
