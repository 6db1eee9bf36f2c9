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
var experiments = map[string]func(r *tidy.Result) []*Grid{"scale": scaling, "contend": contending, "cold": cold,
	"filters": filtering, "ranges": ranging, "compare": comparing, "objects": storing}

//go:embed notes.yaml
var notesFile string

// notes are those of the file.
var notes = bench.Table[map[string][]string]([]byte(strings.NewReplacer("${many}", strconv.Itoa(filters.ManyFilters),
	"${small}", count(filters.SmallKeys)).Replace(notesFile)))

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

// crossTable has a row for each of some cells without one of their settings, and a column for each value of that. The
// first ones, as many as words says, are text. Rows with the same value in the first column are together.
func crossTable(r *tidy.Result, title string, words int, by []string, over string, cells []tidy.Cell, show figures,
) *Grid {
	var columns []column
	var rows []tidy.Cell
	for _, cell := range cells {
		value := cell[over]
		name := setting(value) + " " + over
		if !slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
			columns = append(columns, column{name, func(n numbers) string {
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
	return cellsTable(r, title, words, by, rows, columns...)
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

// filtering is filters by themselves.
func filtering(r *tidy.Result) (grids []*Grid) {
	for _, keys := range r.Each("keys") {
		cells := slices.DeleteFunc(r.Cells("keys", "filter"), func(c tidy.Cell) bool { return c["keys"] != keys })
		grids = append(grids, cellsTable(r, setting(keys)+" keys", 1, []string{"filter"}, cells,
			column{"bits/key", in(two, "size")}, column{"theory", in(two, "theory-size")},
			column{"FPR % [95 %]", interval(percent, "fpr")}, column{"theory", in(percent, "theory-fpr")},
			column{"build ns", in(nanos, "build")},
			column{"build B", in(func(x float64) string { return fixed(x, 1) }, "build-bytes")},
			column{"present ns", in(nanos, "present")}, column{"absent ns", in(nanos, "absent")},
			column{"small", in(nanos, "small-present")}, column{"small absent", in(nanos, "small-absent")},
			column{fmt.Sprintf("%d files", filters.ManyFilters), in(nanos, "many-absent")},
			column{"x pebble", fasterThanPebble}))
	}
	return grids
}

// fasterThanPebble shows how many times as long Pebble's filter takes for an absent key.
func fasterThanPebble(n numbers) string {
	base, ok := numbers{n.Result, n.cell.With("filter", filters.Pebble)}.median("absent")
	if !ok {
		return absentCell
	}
	return in(func(x float64) string { return ratio(base / x) }, "absent")(n)
}

// ranging is range filters by themselves.
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
		grids = append(grids, cellsTable(r, title, 1, []string{"filter"}, of,
			column{"bits/key", in(two, "size")}, column{"theory", in(two, "theory-size")},
			column{"theory %", in(percent, "theory-rate")}, column{"build ns", in(nanos, "build")},
			column{"x blocked", slowerThanPoints}, column{"query ns", func(n numbers) string {
				return in(nanos, "query")(numbers{r, n.cell.With("ranges", kinds[0]["ranges"])})
			}}))
		columns := []column{{"asked", in(whole, "asked")}}
		for _, f := range of {
			columns = append(columns, column{f["filter"] + " %", func(n numbers) string {
				return interval(percent, "rate")(numbers{r, n.cell.With("filter", f["filter"])})
			}})
		}
		grids = append(grids, cellsTable(r, "", 1, []string{"ranges"}, kinds, columns...))
	}
	return grids
}

// slowerThanPoints shows how many times as long as the filter for lookups this one takes to build.
func slowerThanPoints(n numbers) string {
	points, _ := n.median("point-build")
	return in(func(x float64) string { return ratio(x / points) }, "build")(n)
}

// storing is a store in an object store.
func storing(r *tidy.Result) (grids []*Grid) {
	kib := func(bytes float64) string { return threeDigits(bytes / 1024) }
	columns := []column{{"bits\n/key", in(bits, "filters")}}
	for _, kind := range objects.LookupKinds {
		columns = append(columns, column{kind + "\nGET", in(threeDigits, kind+" gets")},
			column{kind + "\nKiB", in(kib, kind+" received")},
			column{kind + "\n$/M", in(threeDigits, kind+" dollars")})
	}
	for _, shape := range []string{objects.Settled, objects.Young} {
		cells := slices.DeleteFunc(r.Cells("filter", "shape", "cache"),
			func(c tidy.Cell) bool { return c["shape"] != shape })
		if len(cells) == 0 {
			continue
		}
		files, _ := numbers{r, cells[0]}.median("files")
		title := map[string]string{objects.Settled: "Lookups, settled",
			objects.Young: "Lookups, young files in level 0"}[shape]
		grids = append(grids, cellsTable(r, title+" ("+times(int(files), "file")+" in all)", 2,
			[]string{"filter", "cache"}, cells, columns...))
	}
	operations := r.Cells("operation", "shape", "filter")
	if len(operations) == 0 {
		return grids
	}
	return append(grids, cellsTable(r, "Operations, "+operations[0]["filter"]+", no cache", 2,
		[]string{"operation", "shape"}, operations, column{"files", in(whole, "files")},
		column{"times", in(whole, "times")}, column{"GET\n/op", in(threeDigits, "gets")},
		column{"PUT\n/op", in(threeDigits, "puts")}, column{"LIST\n/op", in(threeDigits, "lists")},
		column{"KiB\nin /op", in(kib, "received")}, column{"KiB\nout /op", in(kib, "sent")},
		column{"$/M", in(threeDigits, "dollars")}, column{"trips", in(figure, "trips")},
		column{"most\ntrips", in(whole, "most-trips")},
		column{"ms", in(func(s float64) string { return figure(1e3 * s) }, "time")}))
}
