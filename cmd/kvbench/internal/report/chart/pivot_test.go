package chart

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell/celltest"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
)

func TestAPivotIsDrawnOverItsNumbers(t *testing.T) {
	small, large := celltest.Samples(), celltest.Samples()
	for _, r := range large {
		r.Settings.Cache *= 64
		for i := range r.Metrics {
			r.Metrics[i].Value /= 2
		}
	}
	set := append(small, large...)
	table := func(columns []string, metrics ...string) *results.Table {
		p, err := results.Pivot(cell.Measured(set), results.Query{Rows: []string{"engine", "filter"}, Columns: columns,
			Metrics: metrics,
			Where:   []string{"engine=siftkv"}})
		require.NoError(t, err)
		return p
	}
	blocks := table([]string{"cache"}, "absent blocks/op")
	lines := Pivot(blocks, nil, "id", "Title")
	require.Empty(t, lines.Headline, "metrics differ in what is better")
	require.Equal(t, Lines, lines.Form)
	require.Equal(t, Axis{Name: "cache, MiB", Log: true}, lines.X)
	require.Len(t, lines.Series, 3)
	require.Equal(t, "siftkv none", lines.Series[0].Name)
	for row, s := range lines.Series {
		require.Len(t, s.Points, 2)
		require.InDelta(t, 64, s.Points[1].X/s.Points[0].X, 0)
		require.InDelta(t, blocks.Places[row][1][0].Median, s.Points[1].Y, 0)
	}

	against := Pivot(blocks, table([]string{"cache"}, "store filter-bits/key"), "id", "Title")
	require.Equal(t, "store filter-bits/key", against.X.Name)
	require.Equal(t, []float64{4.04, 8.08}, []float64{against.Series[2].Points[0].X, against.Series[2].Points[1].X},
		"bloom:8, in order of the axis")

	bars := Pivot(table([]string{"shape"}, "absent blocks/op", "existing blocks/op"), nil, "id", "Title")
	require.Equal(t, Bars, bars.Form)
	require.Equal(t, []string{"siftkv none", "siftkv blocked:12", "siftkv bloom:8"}, bars.Categories)
	require.Len(t, bars.Series, 4)
}
