package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell/celltest"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/internal/golden"
)

func TestPivotGolden(t *testing.T) {
	more := celltest.Samples()
	for _, r := range more {
		r.Settings.Seed++
		for i := range r.Metrics {
			r.Metrics[i].Value *= 1.5
		}
	}
	set := append(celltest.Samples(), more...)
	table, err := results.Pivot(cell.Measured(set), results.Query{
		Rows: []string{"engine", "filter"}, Columns: []string{"shape"},
		Metrics: []string{"absent blocks/op", "absent fpr", "store filter-bits/key"},
	})
	require.NoError(t, err)
	g := PivotGrid(table)
	golden.File(t, "testdata/pivot.md", g.Markdown())
	var out bytes.Buffer
	require.NoError(t, PivotCSV(&out, table))
	golden.File(t, "testdata/pivot.csv", out.String())
}

func TestAMetricWithoutAKindHasTheFormatOfItsUnit(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0.0117 %", metricFormat("fpr")(0.000117))
	require.Equal(t, metricFormat("absent fpr")(0.000117), metricFormat("fpr")(0.000117))
}
