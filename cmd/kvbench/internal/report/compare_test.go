package report

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// TestMedianInterval has the probabilities of Student's sign test: with five values
// the range holds the median with 94 %, the second from both ends of eight with 93 %.
func TestMedianInterval(t *testing.T) {
	for _, c := range []struct {
		xs                []float64
		median, low, high float64
	}{
		{[]float64{3}, 3, 3, 3},
		{[]float64{5, 1}, 3, 1, 5},
		{[]float64{5, 1, 2, 9, 3}, 3, 1, 9},
		{[]float64{8, 7, 6, 5, 4, 3, 2, 1}, 4.5, 2, 7},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, 7, 4, 10},
	} {
		median, low, high := medianInterval(c.xs)
		require.Equal(t, []float64{c.median, c.low, c.high}, []float64{median, low, high}, c.xs)
	}
}

func TestRatiosAreOfRepetitions(t *testing.T) {
	settings := compare.Settings{Engines: []string{"siftkv", "pebble", "bbolt", "badger"}}
	r := tidy.New("compare", "", settings, sample()[0].Environment)
	for _, e := range []struct {
		name  string
		rates []float64
	}{{"siftkv", []float64{100, 10, 40}}, {"pebble", []float64{50, 5, 10}}, {"bbolt", []float64{100}},
		{"badger", []float64{0}}} {
		of := compare.Cell("absent", "none", e.name)
		r.Add(of, compare.PerSecond, "1/s", e.rates...)
		r.Add(of, "allocs-absent", "", 2)
	}
	row := func(g *Grid) (texts []string) {
		require.Len(t, g.Rows, 1)
		for _, item := range g.Rows[0] {
			texts = append(texts, item.Text)
		}
		return texts
	}
	require.Equal(t, []string{"absent", "2.00 [2.00, 4.00]", "1.00 [1.00, 1.00]", "-"},
		row(compareRatios(r, "per second", "none", compare.PerSecond)))
	require.Equal(t, []string{"absent", "-", "-", "-"}, row(compareRatios(r, "", "none", compare.PerCPU)))
	require.Equal(t, []string{"absent", "get", "25,000,000", "100,000,000", "10,000,000", "-", ""},
		row(compareTimes(r, "Nanoseconds", "none", compare.PerSecond)))
	r.Add(compare.Cell("absent", "none", "bbolt"), compare.Allocs, "/op", 3, 2)
	require.Equal(t, "- - 2.0 -", row(compareTimes(r, "", "none", compare.PerSecond))[6], "each has its place")
	require.Equal(t, []string{"allocations of a get, absent", "none", "", "2.00", "2.00", "2.00", "2.00"},
		row(compareFigures(r)))
}

// TestTheBaselineIsTheFirstEngineOfTheSettings has an engine that has rows only of the second phase, and one that has
// none, in a result as it was measured and as it is read.
func TestTheBaselineIsTheFirstEngineOfTheSettings(t *testing.T) {
	settings := compare.Settings{Engines: []string{"bbolt", "siftkv", "badger"}}
	measured := tidy.New("compare", "", settings, sample()[0].Environment)
	measured.Add(compare.Cell("absent", "none", "siftkv"), compare.PerSecond, "1/s", 4)
	measured.Add(compare.Cell("existing", "none", "siftkv"), compare.PerSecond, "1/s", 6)
	measured.Add(compare.Cell("existing", "none", "bbolt"), compare.PerSecond, "1/s", 12)
	data, err := json.Marshal(measured)
	require.NoError(t, err)
	read := new(tidy.Result)
	require.NoError(t, json.Unmarshal(data, read))
	for _, r := range []*tidy.Result{measured, read} {
		g := compareRatios(r, "per second", "none", compare.PerSecond)
		require.Equal(t, []string{"workload", "siftkv", "badger"}, names(g))
		rows := map[string][]string{}
		for _, row := range g.Rows {
			rows[row[0].Text] = []string{row[1].Text, row[2].Text}
		}
		require.Equal(t, map[string][]string{"absent": {"-", "-"}, "existing": {"2.00 [2.00, 2.00]", "-"}}, rows)
		require.Equal(t, []string{"workload", "per", "bbolt", "siftkv", "badger", "allocs/op"},
			names(compareTimes(r, "Nanoseconds", "none", compare.PerSecond)))
	}
}

// names returns the headings of a table.
func names(g *Grid) (all []string) {
	for _, c := range g.Columns {
		all = append(all, c.Name)
	}
	return all
}

func TestLoadsShowTheirSpread(t *testing.T) {
	r := tidy.New("compare", "", compare.Settings{Engines: []string{"siftkv", "bbolt"}}, sample()[0].Environment)
	for engine, loads := range map[string][]float64{"siftkv": {3, 1, 2}, "bbolt": {7}} {
		r.Add(tidy.Of("engine", engine, "compression", "none"), "load", "s", loads...)
	}
	shown := map[string]string{}
	for _, row := range TidyGrids(r)[0].Rows {
		shown[row[0].Text] = row[2].Text
	}
	require.Equal(t, map[string]string{"siftkv": "2.00 [1.00, 3.00]", "bbolt": "7.00"}, shown)
}
