package results

import (
	"fmt"
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
	rows := d.Rows().Rows
	exceeded := rows[len(rows)-1]
	require.Equal(t, "exceeded", exceeded.Metric)
	require.Equal(t, "per_second", exceeded.Cell["of"], "without a space where the kind would be")
	require.Equal(t, "1/s", rows[2].Unit)

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

// runs loads a directory that has a file for each run of an experiment with a number of keys.
func runs(t *testing.T, keys ...uint64) *Set {
	t.Helper()
	dir := t.TempDir()
	for i, n := range keys {
		settings := map[string]any{"keys": n, "engines": []string{"siftkv"}, "store": map[string]any{"cache": 9}}
		r := tidy.New("compare", "about", settings, environ.Environment{})
		r.Add(tidy.Of("engine", "siftkv"), "per_second", "1/s", float64(100+i), 200)
		require.NoError(t, WriteJSON(filepath.Join(dir, fmt.Sprint(i, ".json")), r))
	}
	set, err := Load(dir)
	require.NoError(t, err)
	return set
}

func TestRunsWithTheSameSettingsAreOne(t *testing.T) {
	t.Parallel()
	both := runs(t, 5, 5).Measured()
	require.Len(t, both, 1)
	require.Equal(t, []float64{100, 200, 101, 200}, both[0].Metrics[0].Samples)
	limits, err := ParseLimits([]string{"per_second<-5%"})
	require.NoError(t, err)
	d, err := Compare(both, both, limits)
	require.NoError(t, err)
	require.NoError(t, d.Err())
}

func TestRunsWithOtherSettingsAreToldApart(t *testing.T) {
	t.Parallel()
	a, b := runs(t, 5).Measured(), runs(t, 1<<60+1).Measured()
	d, err := Compare(a, b, nil)
	require.NoError(t, err)
	require.Contains(t, d.Warnings, "the sets were measured with other settings: keys 5 and 1152921504606846977")

	mixed := runs(t, 5, 6).Measured()
	_, err = Compare(mixed, a, nil)
	require.ErrorIs(t, err, bench.ErrUsage)
	require.ErrorContains(t, err, "experiment=compare engine=siftkv more than once (keys 5 and 6)")
	table, err := Pivot(mixed, Query{Rows: []string{"engine"}, Metrics: []string{"per_second"}})
	require.NoError(t, err)
	require.Equal(t, []string{"the results were measured with other settings: keys 5 and 6"}, table.Warnings)
}

// TestCountsOfSeveralRunsStayExactWhileTheyAreEqual loads runs whose rows are counts that the same settings give again.
func TestCountsOfSeveralRunsStayExactWhileTheyAreEqual(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, files := range []float64{7, 7, 8} {
		r := tidy.New("compare", "about", nil, environ.Environment{})
		r.Rows = append(r.Rows, tidy.Row{Metric: "blocks/op", Value: 3, Unit: "/op", Exact: true, Better: "lower"},
			tidy.Row{Metric: "files", Value: files, Exact: true})
		if i == 2 {
			r.Rows = append(r.Rows, tidy.Row{Metric: "runs", Value: 4, Unit: "runs", Exact: true})
		}
		require.NoError(t, WriteJSON(filepath.Join(dir, fmt.Sprint(i, ".json")), r))
	}
	set, err := Load(dir)
	require.NoError(t, err)
	all := set.Measured()
	require.Len(t, all, 1)
	require.Equal(t, &tidy.Metric{Unit: "blocks/op", Value: 3, Exact: true, Better: "lower"},
		all[0].Metric("", "blocks/op"))
	require.Equal(t, &tidy.Metric{Unit: "runs", Value: 4, Exact: true}, all[0].Metric("", "runs"))
	require.Equal(t, "runs", all[0].Units["runs"])
	changed := all[0].Metric("", "files")
	require.False(t, changed.Exact, "runs gave 7 and 8")
	require.Equal(t, []float64{7, 7, 8}, changed.Samples)
}
