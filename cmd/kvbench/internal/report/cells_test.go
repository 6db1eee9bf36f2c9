package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell/celltest"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/internal/golden"
)

func TestCellsGolden(t *testing.T) {
	set := celltest.Samples()
	for name, write := range map[string]func(io.Writer, []*cell.Result) error{
		"cells.txt": Cells, "cells.csv": CellsCSV,
	} {
		var out bytes.Buffer
		require.NoError(t, write(&out, set))
		golden.File(t, "testdata/"+name, out.String())
	}
	var one bytes.Buffer
	require.NoError(t, Cell(&one, set[2]))
	golden.File(t, "testdata/cell.txt", one.String())
	data, err := bench.JSON(set[2])
	require.NoError(t, err)
	golden.File(t, "testdata/cell.json", data)
}

func TestEveryNumberOfTheTablesIsAMetric(t *testing.T) {
	set := celltest.Samples()
	data, err := json.Marshal(set)
	require.NoError(t, err)
	var again []*cell.Result
	require.NoError(t, json.Unmarshal(data, &again))
	require.Equal(t, Grids(set), Grids(again), "the JSON holds what the tables show")
	for _, g := range Grids(set)[:2] {
		for i, row := range g.Rows {
			for n, c := range cellTables.Lookups {
				item := row[len(NewLabels(cell.Measured(set)).Varying)+n]
				kind := "absent"
				if strings.HasPrefix(g.Title, "Existing") {
					kind = "existing"
				}
				m := set[i].Metric(kind, c.Unit)
				require.Equal(t, m == nil, item.Sort == nil, "%s %s", g.Title, c.Unit)
				if m != nil {
					require.InDelta(t, m.Value, *item.Sort, 0)
				}
			}
		}
	}
}

func TestWorkersHaveAColumnForWhatTheyDoTogether(t *testing.T) {
	set := celltest.Samples()
	for i, g := range Grids(set)[:2] {
		require.NotContains(t, g.Text(), "lookups", "one worker: it is the time turned over")
		set[2].Settings.Threads = 4
		g = Grids(set)[i]
		require.Contains(t, g.Text(), "lookups")
		at := slices.IndexFunc(g.Columns, func(c Column) bool { return c.Name == cellTables.Workers[0].Name })
		require.InDelta(t, set[2].Metric([]string{"absent", "existing"}[i], "lookups/s").Value, *g.Rows[2][at].Sort, 0)
		set[2].Settings.Threads = 1
	}
}

func TestTitlesSayWhereAbsentKeysLie(t *testing.T) {
	titles := func(set []*cell.Result) string {
		grids := Grids(set)
		return grids[0].Title + "; " + grids[1].Title
	}
	set := celltest.Samples()[:2]
	require.Equal(t, "Absent keys, between existing ones; Existing keys", titles(set))
	set[1].Keys.Replay, set[1].Settings.Workload = &keys.Replay{}, cell.Replay
	require.Equal(t, "Absent keys, of traces and between existing ones; Existing keys", titles(set))
	require.Equal(t, "Absent keys, as the trace asked for them; Existing keys, as the trace asked for them",
		titles(set[1:]))
	set[1].Settings.Workload = cell.Uniform
	require.Equal(t, "Absent keys of the trace; Existing keys", titles(set[1:]))
}

func TestCSVCanBeRead(t *testing.T) {
	set := celltest.Samples()
	var out bytes.Buffer
	require.NoError(t, CellsCSV(&out, set))
	lines, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	require.Greater(t, len(lines), 50)
	for _, line := range lines[1:] {
		_, err := strconv.ParseFloat(line[len(line)-1], 64)
		require.NoError(t, err)
	}
}

func TestWarningsOfCellsWhoseNamesDifferInDigits(t *testing.T) {
	var set []*cell.Result
	for i, name := range []string{"siftkv bloom:8", "siftkv bloom:10"} {
		set = append(set, &cell.Result{Name: name, Warnings: []string{fmt.Sprintf("load average %d", i+1),
			name + " is not settled: its files are in 2 levels"}})
	}
	require.Equal(t, []string{"load average 1", "siftkv bloom:8 is not settled: its files are in 2 levels",
		"siftkv bloom:10 is not settled: its files are in 2 levels"}, Warnings(set))
}

func TestNotesOfTracesThatDifferInDigits(t *testing.T) {
	var set []*cell.Result
	for i, name := range []string{"a.trace@1", "a.trace@1", "b.trace@2"} {
		r := &cell.Result{Name: fmt.Sprint("cell ", i), Notes: []string{fmt.Sprintf("Replay of %d lookups", 5+i/2)},
			Warnings: []string{fmt.Sprintf("load average %d", i), fmt.Sprintf("the trace lacks %d lookups", 7+i/2)}}
		r.Settings.Keys, r.Keys.Replay, r.Environment.Warnings = name, &keys.Replay{}, r.Warnings[:1]
		set = append(set, r)
	}
	require.Equal(t, []string{"Replay of 5 lookups", "Replay of 6 lookups"}, Notes(set))
	require.Equal(t, []string{"load average 0", "the trace lacks 7 lookups", "the trace lacks 8 lookups"},
		Warnings(set))
	require.Len(t, Machines(set), 1)
}

func TestTheMachineFitsOnAScreen(t *testing.T) {
	e := environ.Environment{CPU: strings.Repeat("A CPU ", 12), Kernel: "6.1.0", Filesystem: "ext4", OS: "linux",
		GoVersion: "go1.26.0", Revision: strings.Repeat("0123456789", 4) + "-dirty"}
	var out Page
	out.Machine(e.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	for _, line := range lines {
		require.LessOrEqual(t, len([]rune(line)), pageWidth)
	}
	require.Equal(t, strings.Join(strings.Fields("machine "+e.String()), " "),
		strings.Join(strings.Fields(strings.Join(lines, " · ")), " "))
}
