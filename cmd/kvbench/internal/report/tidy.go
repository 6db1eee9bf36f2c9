package report

import (
	"encoding/json"
	"io"
	"slices"
	"strconv"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// An experiment is how results of its name are shown.
type experiment struct {
	grids func(r *tidy.Result) []*Grid // those without a row are left out
	notes []string
}

// experiments are those with results that are rows, by name.
var experiments = map[string]experiment{"scale": scaling, "contend": contending, "cold": cold,
	"filters": filtering, "ranges": ranging, "compare": comparing, "objects": storing, "ycsb": operating}

// TidyGrids returns the tables of a result.
func TidyGrids(r *tidy.Result) []*Grid {
	return slices.DeleteFunc(experiments[r.Experiment].grids(r), func(g *Grid) bool { return len(g.Rows) == 0 })
}

// Tidy writes a result as text for a terminal.
func Tidy(w io.Writer, r *tidy.Result) error {
	return write(w, func(out *Page) {
		e := experiments[r.Experiment]
		out.Printf("%s\n\nmachine   %s\n", r.About, r.Environment.String())
		for _, g := range TidyGrids(r) {
			out.Grid(g)
		}
		out.List("Notes", slices.Concat(r.Notes, e.notes)...)
		out.End(r.Environment.Warnings, r.WallSeconds)
	})
}

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

// keys returns how many keys the store of the cell has.
func (n numbers) keys() float64 {
	keys, _ := strconv.ParseFloat(n.cell["keys"], 64)
	return keys
}

// A figures makes the text of a number of a cell.
type figures func(n numbers) string

// in shows the median of a metric.
func in(format func(float64) string, metric string) figures {
	return func(n numbers) string {
		if x, ok := n.median(metric); ok {
			return format(x)
		}
		return absentCell
	}
}

// spread shows the median of a metric with its extremes.
func spread(format func(float64) string, metric string) figures {
	return func(n numbers) string {
		all := n.Values(n.cell, metric)
		if len(all) == 0 {
			return absentCell
		}
		return between(format, measure.Median(all), slices.Min(all), slices.Max(all))
	}
}

// repeated shows what spread does, and a metric of one repetition without extremes.
func repeated(format func(float64) string, metric string) figures {
	return func(n numbers) string {
		if len(n.Values(n.cell, metric)) > 1 {
			return spread(format, metric)(n)
		}
		return in(format, metric)(n)
	}
}

// interval shows a metric between those that end in -low and -high.
func interval(format func(float64) string, metric string) figures {
	return func(n numbers) string {
		x, ok := n.median(metric)
		low, _ := n.median(metric + "-low")
		high, _ := n.median(metric + "-high")
		if !ok {
			return absentCell
		}
		return between(format, x, low, high)
	}
}

// perKey shows bytes of a metric by key.
func perKey(metric string) figures {
	return func(n numbers) string {
		return in(func(x float64) string { return fixed(x/n.keys(), 2) }, metric)(n)
	}
}

// A column of a table of cells has a heading and what it shows.
type column struct {
	name string
	show figures
}

// cellTable has a row for each cell that has the settings of by and no others. The first ones, as many as words
// says, are text.
func cellTable(r *tidy.Result, title string, words int, by []string, columns ...column) *Grid {
	return cellsTable(r, title, words, by, r.Cells(slices.Clone(by)...), columns...)
}

// cellsTable has a row for each of some cells.
func cellsTable(r *tidy.Result, title string, words int, by []string, cells []tidy.Cell, columns ...column) *Grid {
	names := slices.Clone(by)
	for _, c := range columns {
		names = append(names, c.name)
	}
	g := newLines(title, words, names...)
	for _, cell := range cells {
		var row []any
		for _, name := range by {
			row = append(row, setting(cell[name]))
		}
		for _, c := range columns {
			row = append(row, c.show(numbers{r, cell}))
		}
		g.Add(row...)
	}
	return g
}

// setting shows the value of a setting: numbers with their digits in groups.
func setting(value string) string {
	if n, err := strconv.Atoi(value); err == nil {
		return count(n)
	}
	return value
}

// mebi shows bytes in MiB.
func mebi(bytes float64) string { return figure(bytes / (1 << 20)) }
