package report

import (
	"cmp"
	_ "embed" // the notes
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/filters"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/objects"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// experiments are those with tables of their own, by name. Of these, tables without a row are left out.
var experiments = map[string]func(r *tidy.Result) []*Grid{"scale": tablesOf, "contend": contending, "cold": tablesOf,
	"filters": filtering, "ranges": ranging, "compare": comparing, "objects": storing}

//go:embed notes.yaml
var notesFile string

var notes = bench.Table[map[string][]string]("report/notes.yaml", replaced(notesFile))

// replaced returns a file with the numbers that it refers to.
func replaced(file string) []byte {
	return []byte(strings.NewReplacer("${many}", strconv.Itoa(filters.ManyFilters),
		"${small}", count(filters.SmallKeys)).Replace(file))
}

// TidyGrids returns the tables of a result. Those of an experiment that has none of its own are one with all numbers.
func TidyGrids(r *tidy.Result) []*Grid {
	grids := experiments[r.Experiment]
	if grids == nil {
		grids = allNumbers
	}
	return slices.DeleteFunc(grids(r), func(g *Grid) bool { return len(g.Rows) == 0 })
}

// allNumbers has a line for each metric of a cell.
func allNumbers(r *tidy.Result) []*Grid {
	all := r.Measured()
	settings := results.SettingNames(all)[min(1, len(all)):] // without the experiment
	g := newGrid("Numbers", len(settings)+1, append(slices.Clone(settings), "metric", "value", "unit")...)
	g.Columns[len(settings)+2].Text = true
	for _, m := range all {
		for _, metric := range m.Metrics {
			var row []any
			for _, name := range settings {
				row = append(row, setting(m.Setting(name).Text))
			}
			value := quantity(metric.Value)
			if len(metric.Samples) > 1 {
				value = between(quantity, metric.Value, slices.Min(metric.Samples), slices.Max(metric.Samples))
			}
			g.Add(append(row, metric.Name(), number(metric.Value, value), m.Units[metric.Name()])...)
		}
	}
	return []*Grid{g}
}

// Tidy writes a result as text for a terminal.
func Tidy(w io.Writer, r *tidy.Result) error {
	return write(w, func(out *Page) {
		out.Printf("%s\n\n", r.About)
		out.Machine(r.Environment.String())
		for _, g := range TidyGrids(r) {
			out.Grid(g)
		}
		out.List("Notes", TidyNotes(r)...)
		out.End(r.Environment.Warnings, r.WallSeconds)
	})
}

// TidyNotes says how the numbers of a result are to be read.
func TidyNotes(r *tidy.Result) []string { return slices.Concat(r.Notes, notes[r.Experiment]) }

// settingsOf returns the settings of a result, which may be read from a file.
func settingsOf[T any](r *tidy.Result) (settings T) {
	if data, err := json.Marshal(r.Settings); err == nil {
		_ = json.Unmarshal(data, &settings) // what does not fit is zero
	}
	return settings
}

// numbers are those of a cell of a result.
type numbers struct {
	*tidy.Result
	cell tidy.Cell
}

// median returns the median of a metric over repetitions, and false if it is not known.
func (n numbers) median(metric string) (float64, bool) {
	all := n.Values(n.cell, metric)
	if len(all) == 0 {
		return 0, false
	}
	return measure.Median(all), true
}

func (n numbers) keys() float64 {
	keys, _ := strconv.ParseFloat(n.cell["keys"], 64)
	return keys
}

// A figures makes the text of a number of a cell.
type figures func(n numbers) string

// A tableSpec is a table of the file, which says what it has.
type tableSpec struct {
	Title   string
	Words   int
	By      []string
	Columns []columnSpec
}

// A columnSpec is a column of a table of cells.
type columnSpec struct {
	Name, Of, Form, Show, Per string
	With                      tidy.Cell
	figures                   figures // in place of the others
}

//go:embed tables.yaml
var tablesFile string

var tables = bench.Table[map[string][]tableSpec]("report/tables.yaml", replaced(tablesFile))

// special are the columns that are functions.
var special = map[string]figures{"growth": growth, "keys per second": loadRate, "faster than pebble": fasterThanPebble}

// text makes the text of the column for a cell.
func (c *columnSpec) text(n numbers) string {
	f := c.figures
	if f == nil {
		f = special[c.Show]
	}
	if f != nil {
		return f(n)
	}
	per := 1.0
	switch c.Per {
	case "":
	case "keys":
		per = n.keys()
	default:
		per, _ = n.median(c.Per)
	}
	n.cell = maps.Clone(n.cell)
	maps.Copy(n.cell, c.With)
	all := n.Values(n.cell, c.Of)
	if len(all) == 0 {
		return absentCell
	}
	form := func(x float64) string { return formats[c.Form](x / per) }
	switch {
	case c.Show == "interval":
		low, _ := n.median(c.Of + "-low")
		high, _ := n.median(c.Of + "-high")
		return between(form, measure.Median(all), low, high)
	case c.Show == "spread", c.Show == "repeated" && len(all) > 1:
		return between(form, measure.Median(all), slices.Min(all), slices.Max(all))
	}
	return form(measure.Median(all))
}

func tablesOf(r *tidy.Result) (grids []*Grid) {
	for _, t := range tables[r.Experiment] {
		grids = append(grids, t.grid(r, r.Cells(slices.Clone(t.By)...)))
	}
	return grids
}

func (t tableSpec) grid(r *tidy.Result, cells []tidy.Cell) *Grid {
	names := slices.Clone(t.By)
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	g := newLines(t.Title, t.Words, names...)
	for _, cell := range cells {
		var row []any
		for _, name := range t.By {
			row = append(row, setting(cell[name]))
		}
		for _, c := range t.Columns {
			row = append(row, c.text(numbers{r, cell}))
		}
		g.Add(row...)
	}
	return g
}

// titled returns the table with a title, and with more columns.
func (t tableSpec) titled(title string, more ...columnSpec) tableSpec {
	t.Title, t.Columns = title, slices.Concat(t.Columns, more)
	return t
}

// crossTable has a row for each of some cells without one of their settings, and a column for each value of that. The
// first ones, as many as words says, are text. Rows with the same value in the first column are together.
func crossTable(r *tidy.Result, title string, words int, by []string, over string, cells []tidy.Cell, show figures,
) *Grid {
	var columns []columnSpec
	var rows []tidy.Cell
	for _, cell := range cells {
		value := cell[over]
		name := setting(value) + " " + over
		if !slices.ContainsFunc(columns, func(c columnSpec) bool { return c.Name == name }) {
			columns = append(columns, columnSpec{Name: name, figures: func(n numbers) string {
				return show(numbers{r, n.cell.With(over, value)})
			}})
		}
		row := cell.With(over, "")
		if !slices.ContainsFunc(rows, func(c tidy.Cell) bool { return maps.Equal(c, row) }) {
			rows = append(rows, row)
		}
	}
	order := r.Each(by[0])
	slices.SortStableFunc(rows, func(a, b tidy.Cell) int {
		return cmp.Compare(slices.Index(order, a[by[0]]), slices.Index(order, b[by[0]]))
	})
	return tableSpec{title, words, by, columns}.grid(r, rows)
}

// setting shows the value of a setting: numbers with their digits in groups.
func setting(value string) string {
	if n, err := strconv.Atoi(value); err == nil {
		return count(n)
	}
	return value
}

func filtering(r *tidy.Result) (grids []*Grid) {
	for _, keys := range r.Each("keys") {
		cells := slices.DeleteFunc(r.Cells("keys", "filter"), func(c tidy.Cell) bool { return c["keys"] != keys })
		grids = append(grids, tables["filters"][0].titled(setting(keys)+" keys").grid(r, cells))
	}
	return grids
}

// fasterThanPebble shows how many times as long Pebble's filter takes for an absent key.
func fasterThanPebble(n numbers) string {
	base, ok := numbers{n.Result, n.cell.With("filter", filters.Pebble)}.median("absent")
	x, known := n.median("absent")
	if !ok || !known {
		return absentCell
	}
	return ratio(base / x)
}

func ranging(r *tidy.Result) (grids []*Grid) {
	for _, set := range r.Cells("set", "keys") {
		of := slices.DeleteFunc(r.Cells("set", "keys", "filter"), func(c tidy.Cell) bool {
			return c["set"] != set["set"] || c["keys"] != set["keys"]
		})
		if len(of) == 0 {
			continue
		}
		kinds := slices.DeleteFunc(r.Cells("set", "keys", "filter", "ranges"), func(c tidy.Cell) bool {
			return c["set"] != set["set"] || c["keys"] != set["keys"] || c["filter"] != of[0]["filter"]
		})
		if len(kinds) == 0 {
			continue
		}
		size, _ := numbers{r, set}.median("key-size")
		title := fmt.Sprintf("%s: %s keys of %s bytes", set["set"], setting(set["keys"]), fixed(size, 1))
		grids = append(grids, tables["ranges"][0].titled(title, columnSpec{Name: "query ns", Of: "query", Form: "ns",
			With: tidy.Cell{"ranges": kinds[0]["ranges"]}}).grid(r, of))
		columns := []columnSpec{{Name: "asked", Of: "asked", Form: "whole"}}
		for _, f := range of {
			columns = append(columns, columnSpec{Name: f["filter"] + " %", Of: "rate", Form: "percent",
				Show: "interval", With: tidy.Cell{"filter": f["filter"]}})
		}
		grids = append(grids, tableSpec{"", 1, []string{"ranges"}, columns}.grid(r, kinds))
	}
	return grids
}

func storing(r *tidy.Result) (grids []*Grid) {
	for _, shape := range []string{objects.Settled, objects.Young} {
		cells := slices.DeleteFunc(r.Cells("filter", "shape", "cache"),
			func(c tidy.Cell) bool { return c["shape"] != shape })
		if len(cells) == 0 {
			continue
		}
		files, _ := numbers{r, cells[0]}.median("files")
		title := map[string]string{objects.Settled: "Lookups, settled",
			objects.Young: "Lookups, young files in level 0"}[shape]
		title += " (" + times(int(files), "file") + " in all)"
		grids = append(grids, tables["objects"][0].titled(title).grid(r, cells))
	}
	operations := r.Cells("operation", "shape", "filter")
	if len(operations) == 0 {
		return grids
	}
	title := "Operations, " + operations[0]["filter"] + ", no cache"
	return append(grids, tables["objects"][1].titled(title).grid(r, operations))
}
