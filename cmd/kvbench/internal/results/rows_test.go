package results

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// TestRowsAreComparedAndTurnedToo reads the rows of an experiment as it reads cells: for a comparison, and for a table
// of some metrics.
func TestRowsAreComparedAndTurnedToo(t *testing.T) {
	load := func(slower float64) *Set {
		r := tidy.New("compare", "about", nil, environ.Environment{})
		for _, engine := range []string{"siftkv", "pebble"} {
			for _, x := range []float64{100, 101, 102, 103, 104} {
				r.Append(tidy.Of("engine", engine, "workload", "absent"), "per_second", "1/s", x*slower)
			}
			r.Add(tidy.Of("engine", engine), "existing p99", "ns", 7)
		}
		path := filepath.Join(t.TempDir(), "rows.json")
		require.NoError(t, WriteJSON(path, r))
		set, err := Load(path)
		require.NoError(t, err)
		require.Len(t, set.Rows, 1)
		return set
	}
	a, b := load(1), load(2)
	limits, err := ParseLimits([]string{"per_second>50%"})
	require.NoError(t, err)
	d, err := Compare(a.Measured(), b.Measured(), limits)
	require.NoError(t, err)
	require.Len(t, d.Cells, 4)
	require.Len(t, d.Violations, 2)
	require.Equal(t, "experiment=compare engine=siftkv workload=absent", d.Violations[0].Cell)
	require.InDelta(t, 1, d.Violations[0].Delta, 0.01)

	query := Query{Rows: []string{"workload"}, Columns: []string{"engine"}, Metrics: []string{"per_second"},
		Where: []string{"workload=absent"}}
	table, err := Pivot(a.Measured(), query)
	require.NoError(t, err)
	require.Equal(t, Place{1, 102, 102, 102}, table.Places[0][1][0])
	query.Metrics = []string{"existing p99"}
	_, err = Pivot(a.Measured(), query)
	require.ErrorIs(t, err, bench.ErrUsage)
	require.ErrorContains(t, err, "per_second, existing p99")
}
