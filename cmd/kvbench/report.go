package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report/chart"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

type reportCommand struct {
	Results string     `arg:"" help:"A directory of results, or a file."`
	Format  string     `default:"table" enum:"table,markdown,csv,json" placeholder:"NAME" help:"${format}"`
	HTML    resultFile `name:"html" placeholder:"FILE" help:"${report_html}"`
	Title   string     `placeholder:"TEXT" help:"${report_title}"`

	pivotFlags `group:"One table"`
}

var formats = map[string]struct {
	cells func(io.Writer, []*cell.Result) error
	rows  func(io.Writer, *tidy.Result) error
}{
	"table": {report.Cells, report.Tidy},
	"csv":   {report.CellsCSV, func(w io.Writer, r *tidy.Result) error { return r.WriteCSV(w) }},
}

func (c *reportCommand) Run(p *program) error {
	if err := c.checkPivot(); err != nil {
		return err
	}
	set, err := results.Load(c.Results)
	if err != nil {
		return err
	}
	if len(c.Metric) > 0 {
		return c.pivot(p, set)
	}
	if !c.HTML.IsStandard() {
		if err := c.print(p.stdout, set); err != nil {
			return err
		}
	}
	if c.HTML == "" {
		return nil
	}
	d, err := chart.NewData(cmp.Or(c.Title, "kvbench"), set)
	if err != nil {
		return err
	}
	return p.writePage(c.HTML, d, set.Cells)
}

func (c *reportCommand) print(w io.Writer, set *results.Set) error {
	f := formats[c.Format]
	switch {
	case c.Format == "json":
		return writeJSON(w, set.All())
	case c.Format == "csv" && len(set.Rows)+min(1, len(set.Cells)) > 1:
		return bench.Usagef("--format csv: %s has several results, whose columns differ: name a file of one", c.Results)
	case f.rows == nil:
		return bench.Usagef("--format %s: this form is for one table; say of which metrics by --metric", c.Format)
	case len(set.Cells) > 0:
		if err := f.cells(w, set.Cells); err != nil {
			return err
		}
	}
	for _, r := range set.Rows {
		if err := f.rows(w, r); err != nil {
			return err
		}
	}
	return nil
}

// pivotFlags ask for one table of some metrics in place of all of all.
type pivotFlags struct {
	Metric  []string `placeholder:"METRICS" help:"${report_metric}"`
	Rows    []string `placeholder:"SETTINGS" help:"${report_rows}"`
	Columns []string `placeholder:"SETTINGS" help:"Settings that make its columns."`
	Where   []string `sep:"none" placeholder:"NAME=VALUE" help:"${report_where}"`
	X       string   `name:"x" placeholder:"METRIC" help:"${report_x}"`
	LogY    bool     `name:"log-y" help:"A logarithmic axis for the chart."`
}

// checkPivot reports flags that mean nothing together.
func (c *reportCommand) checkPivot() error {
	switch {
	case len(c.Metric) == 0 && (len(c.Columns) > 0 || len(c.Where) > 0 || c.X != "" || c.LogY):
		return bench.Usagef("--columns, --where, --x and --log-y need --metric, such as --metric 'absent blocks/op'")
	case c.HTML == "" && (c.X != "" || c.LogY):
		return bench.Usagef("--x and --log-y are of the chart; say where to write its page by --html")
	}
	return nil
}

// table makes the table of some metrics. By default its rows are by engine and filter, as far as cells have them.
func (f *pivotFlags) table(set *results.Set, metrics []string) (*results.Table, error) {
	all, rows := set.Measured(), f.Rows
	if rows == nil {
		names := results.SettingNames(all)
		rows = slices.DeleteFunc([]string{"engine", "filter"},
			func(name string) bool { return !slices.Contains(names, name) })
	}
	return results.Pivot(all, results.Query{Rows: rows, Columns: f.Columns, Metrics: metrics, Where: f.Where})
}

func (c *reportCommand) pivot(p *program, set *results.Set) error {
	t, err := c.table(set, c.Metric)
	if err != nil {
		return err
	}
	for _, warning := range t.Warnings {
		_, _ = fmt.Fprintf(p.stderr, "kvbench: %s\n", warning)
	}
	g := report.PivotGrid(t)
	switch {
	case c.HTML.IsStandard():
	case c.Format == "table":
		_, err = io.WriteString(p.stdout, g.Text())
	case c.Format == "markdown":
		_, err = io.WriteString(p.stdout, g.Markdown())
	case c.Format == "csv":
		err = report.PivotCSV(p.stdout, t)
	default:
		err = bench.Usagef("--format %s: a table of some metrics is printed as table, markdown or csv", c.Format)
	}
	if err != nil || c.HTML == "" {
		return err
	}
	return c.pivotPage(p, set, t)
}

func (c *reportCommand) pivotPage(p *program, set *results.Set, t *results.Table) error {
	var x *results.Table
	if c.X != "" {
		var err error
		if x, err = c.table(set, []string{c.X}); err != nil {
			return err
		}
	}
	title := cmp.Or(c.Title, t.Title())
	d, err := chart.NewData(title, set)
	if err != nil {
		return err
	}
	d.Warnings = append(d.Warnings, t.Warnings...)
	one := chart.Pivot(t, x, fileName(title), title)
	one.Y.Log = c.LogY
	d.Charts, d.Grids = []chart.Chart{one}, []*report.Grid{report.PivotGrid(t)}
	return p.writePage(c.HTML, d, set.Cells)
}

// fileName makes the name of a saved chart of its title: letters and digits, the rest one dash each.
func fileName(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title),
		func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}

type diffCommand struct {
	A      string   `arg:"" help:"First set: a directory of results, or a file."`
	B      string   `arg:"" help:"Second set."`
	FailOn []string `sep:"none" placeholder:"LIMITS" help:"${diff_failon}"`
	All    bool     `help:"Show what did not change, too."`
	rowsFlags
}

// Run compares and prints; a limit that is passed is an error after that.
func (c *diffCommand) Run(p *program) error {
	limits, err := results.ParseLimits(c.FailOn)
	if err != nil {
		return err
	}
	a, err := results.Load(c.A)
	if err != nil {
		return err
	}
	b, err := results.Load(c.B)
	if err != nil {
		return err
	}
	d, err := results.Compare(a.Measured(), b.Measured(), limits)
	if err != nil {
		return err
	}
	text := func(w io.Writer, _ *tidy.Result) error { return report.Diff(w, d, c.All) }
	return cmp.Or(c.showAs(p, text)(d.Rows(), nil), d.Err())
}

type envCommand struct {
	Dir  string `placeholder:"DIR" help:"Where stores would be made (default: the system's temporary directory)."`
	JSON bool   `name:"json" help:"Print JSON."`
}

func (c *envCommand) Run(p *program) error {
	dir := c.Dir
	if dir == "" {
		dir = os.TempDir()
	}
	e := environ.Capture(p.argv, dir)
	if !c.JSON {
		return report.Environment(p.stdout, &e)
	}
	return writeJSON(p.stdout, e)
}
