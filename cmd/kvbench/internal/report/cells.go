package report

import (
	_ "embed" // the columns
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// Cells writes a set of results as text for a terminal.
func Cells(w io.Writer, set []*cell.Result) error {
	return write(w, func(out *Page) {
		writeCommon(out, set)
		for _, g := range Grids(set) {
			out.Grid(g)
		}
		identities(out, Identities(set))
		out.List("Notes", Notes(set)...)
		out.List("Warnings", Warnings(set)...)
	})
}

func writeCommon(out *Page, set []*cell.Result) {
	out.Printf("cells     %s\n", count(len(set)))
	if l := NewLabels(cell.Measured(set)); len(l.Common) > 0 {
		out.Printf("all       %s\n", strings.Join(l.Common, " · "))
	}
	for _, text := range Machines(set) {
		out.Machine(text)
	}
}

// Machines says on what the cells of a set ran, each machine once.
func Machines(set []*cell.Result) []string {
	return collect(set, func(r *cell.Result) []string {
		e := r.Environment
		e.Load1 = 0 // it differs from cell to cell
		return []string{strings.Replace(e.String(), "load 0.00 · ", "", 1)}
	}, func(_ *cell.Result, line string) string { return withoutDigits(line) })
}

// Notes returns the notes of all cells, each once. The numbers in them are of what was asked for.
func Notes(set []*cell.Result) []string {
	return collect(set, func(r *cell.Result) []string { return r.Notes },
		func(_ *cell.Result, line string) string { return line })
}

// Warnings returns the warnings of all cells, each once. Those that differ from cell to cell in their numbers alone are
// told once, except those that name their cell and those of another trace.
func Warnings(set []*cell.Result) []string {
	return collect(set, func(r *cell.Result) []string { return r.Warnings }, func(r *cell.Result, line string) string {
		switch {
		case strings.Contains(line, r.Name):
			return line
		case r.Keys.Replay != nil && !slices.Contains(r.Environment.Warnings, line):
			return r.Settings.Keys + withoutDigits(line)
		}
		return withoutDigits(line)
	})
}

// collect gathers lines of all cells, of each key once.
func collect(set []*cell.Result, lines func(*cell.Result) []string, key func(*cell.Result, string) string) []string {
	seen, all := map[string]bool{}, []string{}
	for _, r := range set {
		for _, line := range lines(r) {
			if k := key(r, line); !seen[k] {
				seen[k], all = true, append(all, line)
			}
		}
	}
	return all
}

func withoutDigits(line string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, line)
}

// Identities sums up the identities of all cells.
func Identities(set []*cell.Result) *measure.Identities {
	sum := new(measure.Identities)
	for _, r := range set {
		sum.Add(&r.Identities)
	}
	return sum
}

// IdentitiesLine says in one line whether the counters of all cells add up.
func IdentitiesLine(set []*cell.Result) string {
	sum := Identities(set)
	if n := len(sum.Failures); n > 0 {
		return fmt.Sprintf("Of %d relations between counters %d do not hold, the first: %s", sum.Checked, n,
			sum.Failures[0])
	}
	return fmt.Sprintf("%d relations between counters were checked, and all hold. Every answer was checked.",
		sum.Checked)
}

// Grids returns the tables of a set: absent keys, existing keys, stores.
func Grids(set []*cell.Result) []*Grid {
	l := NewLabels(cell.Measured(set))
	grids := []*Grid{phaseGrid(set, l, engine.Absent), phaseGrid(set, l, engine.Existing)}
	if slices.ContainsFunc(set, func(r *cell.Result) bool { return r.Scans != nil }) {
		scans := metricColumns(cell.ScanKind, cellTables.Scans)
		grids = append(grids, cellGrid("Scans between two bounds", set, l, scans))
	}
	return append(grids, storeGrid(set, l))
}

func settingColumns(l *Labels) []Column {
	var columns []Column
	for _, name := range l.Varying {
		columns = append(columns, Column{Name: name, Help: "setting", Text: true})
	}
	return columns
}

type metricColumn struct{ Unit, Name, Help, Format string }

// formats are the forms of numbers by their names in the files of columns and tables.
var formats = map[string]func(float64) string{"count": perOne, "ns": nanos, "whole": whole, "bits": bits,
	"bytes": size[float64], "ratio": ratio, "s": seconds, "figure": figure, "percent": percent, "three": threeDigits,
	"one":        func(x float64) string { return fixed(x, 1) },
	"two":        func(x float64) string { return fixed(x, 2) },
	"KiB":        func(x float64) string { return threeDigits(x / (1 << 10)) },
	"MiB":        func(x float64) string { return figure(x / (1 << 20)) },
	"s in ms":    func(x float64) string { return figure(1e3 * x) },
	"ns in µs":   func(x float64) string { return figure(x / 1e3) },
	"thousands":  func(x float64) string { return figure(x / 1e3) },
	"rate in ns": func(x float64) string { return nanos(1e9 / x) },
}

//go:embed columns.yaml
var columnsFile []byte

var cellTables = bench.Table[struct {
	Lookups, Workers, Funnel, Scans, Stores []metricColumn
}]("report/columns.yaml", columnsFile)

func columnsOf(set []*cell.Result) []metricColumn {
	if slices.ContainsFunc(set, func(r *cell.Result) bool { return r.Settings.Threads > 1 }) {
		return slices.Concat(cellTables.Lookups, cellTables.Workers)
	}
	return cellTables.Lookups
}

// keysTitle names the keys of a table: absent ones lie between existing ones, except
// those of a trace, which lie where the application asked.
func keysTitle(set []*cell.Result, kind engine.Kind) string {
	traces, replays := 0, 0
	for _, r := range set {
		if r.Keys.Replay != nil {
			traces++
		}
		if r.Settings.Workload == cell.Replay {
			replays++
		}
	}
	switch {
	case kind == engine.Existing && replays == len(set):
		return "Existing keys, as the trace asked for them"
	case kind == engine.Existing:
		return "Existing keys"
	case replays == len(set):
		return "Absent keys, as the trace asked for them"
	case traces == len(set):
		return "Absent keys of the trace"
	case traces > 0:
		return "Absent keys, of traces and between existing ones"
	}
	return "Absent keys, between existing ones"
}

type cellColumn struct {
	Column
	item func(*cell.Result) Item
}

// cellGrid has a line per cell: its settings and some columns.
func cellGrid(title string, set []*cell.Result, l *Labels, columns []cellColumn) *Grid {
	g := &Grid{Title: title, Columns: settingColumns(l)}
	for _, c := range columns {
		g.Columns = append(g.Columns, c.Column)
	}
	for i, r := range set {
		row := slices.Clone(l.Values(i))
		for _, c := range columns {
			row = append(row, c.item(r))
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// metricColumns show metrics of one kind, of the cells that have them.
func metricColumns(kind string, list []metricColumn) []cellColumn {
	var columns []cellColumn
	for _, c := range list {
		columns = append(columns, cellColumn{Column{Name: c.Name, Help: c.Help}, func(r *cell.Result) Item {
			if m := r.Metric(kind, c.Unit); m != nil {
				return number(m.Value, formats[c.Format](m.Value))
			}
			return word(absentCell)
		}})
	}
	return columns
}

func phaseGrid(set []*cell.Result, l *Labels, kind engine.Kind) *Grid {
	columns := metricColumns(string(kind), columnsOf(set))
	if kind == engine.Absent {
		columns = append(columns,
			cellColumn{Column{Name: "FPR\u00a0% [95\u00a0%]",
				Help: "false positives / (false positives + negatives), with its Wilson interval"},
				func(r *cell.Result) Item { return rateItem(r.Absent.FPR) }},
			cellColumn{Column{Name: "FPR\u00a0% theory", Help: "what theory says of the filter in files of this size"},
				theoryItem})
	}
	return cellGrid(keysTitle(set, kind), set, l, columns)
}

func rateItem(r *measure.Rate) Item {
	if r == nil {
		return word(absentCell)
	}
	return number(r.Value, between(percent, r.Value, r.Low, r.High))
}

func theoryItem(r *cell.Result) Item {
	if r.Theory == nil {
		return word(absentCell)
	}
	return number(r.Theory.FPR, percent(r.Theory.FPR))
}

func storeGrid(set []*cell.Result, l *Labels) *Grid {
	return cellGrid("Stores", set, l, append(metricColumns(cell.StoreKind, cellTables.Stores), cellColumn{
		Column{Name: "levels", Help: "files of each level, youngest first", Text: true},
		func(r *cell.Result) Item { return word(levelsText(r.Shape)) },
	}))
}

func levelsText(s engine.Shape) string {
	var out []string
	for _, l := range s.Levels {
		text := fmt.Sprintf("L%d:%d", l.Level, l.Files)
		if l.Level > 0 && l.Runs > 1 {
			text += fmt.Sprintf("/%d", l.Runs)
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return absentCell
	}
	return strings.Join(out, " ")
}

// Labels distinguishes the cells of a set by the settings in which they differ, the
// engine and the filter first and always.
type Labels struct {
	Varying []string // names of settings, in the order of their text
	Common  []string // name value of all others
	values  [][]Item // by cell, in the order of Varying
}

// NewLabels compares the settings of cells.
func NewLabels(set []*tidy.Measured) *Labels {
	l := &Labels{values: make([][]Item, len(set))}
	for _, name := range results.SettingNames(set) {
		differs := name == "engine" || name == "filter"
		items := make([]Item, len(set))
		for i, m := range set {
			items[i] = settingItem(m.Setting(name))
			differs = differs || items[i].Text != items[0].Text
		}
		if !differs {
			l.Common = append(l.Common, name+" "+items[0].Text)
			continue
		}
		l.Varying = append(l.Varying, name)
		for i := range items {
			l.values[i] = append(l.values[i], items[i])
		}
	}
	return l
}

// settingItem shows a setting, and sorts it by its number if it has one.
func settingItem(s tidy.Setting) Item {
	if x, err := strconv.ParseFloat(s.Text, 64); err == nil {
		return number(x, s.Shown)
	}
	return word(s.Shown)
}

// Values returns the values of the varying settings of the n-th cell.
func (l *Labels) Values(n int) []Item { return l.values[n] }

// Text returns the values in one line, no two of which are alike: what a cell has by default is left out, and values
// that do not speak for themselves have the names of their settings.
func (l *Labels) Text(n int) string {
	usual, names := cell.Default(), cell.FieldNames()
	fields := cell.Fields(&usual)
	var out []string
	for i, name := range l.Varying {
		value, at := l.values[n][i].Text, slices.Index(names, name)
		switch {
		case name == "engine" || name == "filter":
			out = append(out, value)
		case at >= 0 && value == fields[at].Show():
		case at >= 0 && fields[at].Label == "%s":
			out = append(out, value)
		default: // its values do not say what they are of
			out = append(out, name+" "+value)
		}
	}
	return strings.Join(out, " ")
}
