package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// TestRowsOfAnEngineAreTogether has numbers in the order in which they are measured: engines take turns.
func TestRowsOfAnEngineAreTogether(t *testing.T) {
	t.Parallel()
	r := tidy.New("contend", "about", nil, environ.Environment{Cores: 2})
	for _, procs := range []int{2, 8} {
		for _, goroutines := range []int{1, 30} {
			for _, name := range []string{"siftkv", "bbolt"} {
				of := compare.Cell("absent", "none", name).With("gomaxprocs", procs, "goroutines", goroutines)
				r.Add(of, compare.PerSecond, "1/s", float64(1000*procs*goroutines))
			}
		}
	}
	grids := TidyGrids(r)
	require.NotEmpty(t, grids)
	first, last := grids[0], grids[len(grids)-1]
	var rows []string
	for _, row := range first.Rows {
		rows = append(rows, row[0].Text+" "+row[1].Text)
	}
	require.Equal(t, []string{"siftkv 2", "siftkv 8", "bbolt 2", "bbolt 8"}, rows)
	require.Contains(t, last.Title, "GOMAXPROCS 8")
	require.True(t, last.Columns[1].Text, "an engine is no number")
	require.False(t, first.Columns[1].Text || last.Columns[2].Text)
}
