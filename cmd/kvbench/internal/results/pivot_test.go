package results

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
)

// made returns a cell with two metrics.
func made(t *testing.T, values map[string]string, blocks, bits float64) *cell.Result {
	t.Helper()
	s := cell.Default()
	for _, f := range cell.Fields(&s) {
		if text, ok := values[f.Name]; ok {
			require.NoError(t, f.Set(text))
		}
	}
	return &cell.Result{Settings: s, Metrics: []cell.Metric{
		{Kind: "absent", Unit: "blocks/op", Value: blocks},
		{Kind: cell.StoreKind, Unit: "filter-bits/key", Value: bits},
	}}
}

func TestCellsThatAgreeShareAPlace(t *testing.T) {
	set := []*cell.Result{
		made(t, map[string]string{"filter": "bloom:10", "cache": "1MiB", "seed": "1"}, 3, 10),
		made(t, map[string]string{"filter": "bloom:10", "cache": "64KiB"}, 7, 10),
		made(t, map[string]string{"filter": "bloom:10", "cache": "1MiB", "seed": "2"}, 1, 10),
		made(t, map[string]string{"filter": "bloom:10", "cache": "1MiB", "seed": "3"}, 2, 10),
		made(t, map[string]string{"filter": "none", "cache": "1MiB"}, 9, 0),
		made(t, map[string]string{"engine": "pebble", "filter": "none", "cache": "1MiB"}, 99, 0),
	}
	table, err := Pivot(cell.Measured(set), Query{
		Rows: []string{"filter"}, Columns: []string{"cache"}, Where: []string{"engine=siftkv"},
		Metrics: []string{"store filter-bits/key", "absent blocks/op"},
	})
	require.NoError(t, err)
	require.Equal(t, 5, table.Cells)
	require.Equal(t, "none", table.RowKeys[0].String())
	require.Equal(t, "bloom:10", table.RowKeys[1].String())
	require.Equal(t, "absent blocks/op, 64KiB", table.ColumnName(0, 1), "sizes are in order of size")
	require.Equal(t, Place{}, table.Places[0][0][1])
	require.Equal(t, Place{1, 9, 9, 9}, table.Places[0][1][1])
	require.Equal(t, Place{1, 7, 7, 7}, table.Places[1][0][1])
	require.Equal(t, Place{3, 2, 1, 3}, table.Places[1][1][1])
	require.Equal(t, Place{3, 10, 10, 10}, table.Places[1][1][0])

	slices.Reverse(set)
	again, err := Pivot(cell.Measured(set), table.Query)
	require.NoError(t, err)
	require.Equal(t, table, again, "whatever the order of the set")
}

func TestSeveralValuesOfOneConditionAreAlternatives(t *testing.T) {
	set := []*cell.Result{
		made(t, map[string]string{"cache": "1MiB", "shape": "grown"}, 1, 0),
		made(t, map[string]string{"cache": "2MiB", "shape": "grown"}, 2, 0),
		made(t, map[string]string{"cache": "4MiB", "shape": "grown"}, 3, 0),
		made(t, map[string]string{"cache": "1MiB"}, 4, 0),
	}
	table, err := Pivot(cell.Measured(set), Query{Metrics: []string{"absent blocks/op"},
		Where: []string{"cache=1024KiB", "cache=2MiB", "shape=grown"}})
	require.NoError(t, err)
	require.Equal(t, Place{2, 1.5, 1, 2}, table.Places[0][0][0])
	require.Empty(t, table.RowKeys[0].String())
	require.Equal(t, "absent blocks/op", table.ColumnName(0, 0))
	require.Equal(t, "absent blocks/op (cache=1024KiB, cache=2MiB, shape=grown)", table.Title())
}

func TestWrongNamesSayWhichAreRight(t *testing.T) {
	set := []*cell.Result{made(t, nil, 1, 1)}
	good := []string{"absent blocks/op"}
	for name, c := range map[string]struct {
		request Query
		says    string
	}{
		"row": {Query{Rows: []string{"bits"}, Metrics: good},
			"--rows bits: not a setting; the settings are engine, filter"},
		"column": {Query{Columns: []string{"bits"}, Metrics: good}, "--columns bits"},
		"kind":   {Query{Metrics: []string{"blocks/op"}}, "no cell has it; there are absent blocks/op"},
		"metric": {Query{Metrics: []string{"absent blox/op"}},
			"there are absent blocks/op, store filter-bits/key"},
		"condition": {Query{Metrics: good, Where: []string{"cache"}}, "want NAME=VALUE"},
		"setting":   {Query{Metrics: good, Where: []string{"bits=1"}}, "--where bits: not a setting"},
		"value":     {Query{Metrics: good, Where: []string{"cache=big"}}, "--where: cache"},
		"no cell":   {Query{Metrics: good, Where: []string{"cache=1MiB", "engine=pebble"}}, "no cell is like that"},
	} {
		_, err := Pivot(cell.Measured(set), c.request)
		require.ErrorIs(t, err, bench.ErrUsage, name)
		require.ErrorContains(t, err, c.says, name)
	}
}

func TestValuesAreOrderedAsAReaderExpects(t *testing.T) {
	want := []string{"none", "settled", "blocked:8", "blocked:10", "bloom:9.5", "bloom:10", "cuckoo:12",
		"cuckoo:12,4", "young:4", "young:16", "oracle"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareValues)
	require.Equal(t, want, got)
	x, ok := Key{exact: []string{"bloom:10"}}.Number()
	require.True(t, ok)
	require.InDelta(t, 10, x, 0)
	_, ok = Key{exact: []string{"none"}}.Number()
	require.False(t, ok)
	_, ok = Key{exact: []string{"1", "2"}}.Number()
	require.False(t, ok)
}
