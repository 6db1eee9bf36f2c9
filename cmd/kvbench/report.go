package main

import (
	"cmp"
	"io"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report/chart"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
)

// reportCommand is the command line of kvbench report.
type reportCommand struct {
	Results string     `arg:"" help:"A directory of results, or a file."`
	Format  string     `default:"table" enum:"table,markdown,csv,benchstat,json" placeholder:"NAME" help:"${format}"`
	HTML    resultFile `name:"html" placeholder:"FILE" help:"${report_html}"`
	Title   string     `placeholder:"TEXT" help:"${report_title}"`

	pivotFlags `group:"One table"`
}

// formats print a set.
var formats = map[string]func(io.Writer, []*cell.Result) error{
	"table": report.Cells, "markdown": report.CellsMarkdown, "csv": report.CellsCSV, "benchstat": report.CellsBenchfmt,
	"json": func(w io.Writer, set []*cell.Result) error { return writeJSON(w, set) },
}

// Run prints the results, and writes the page if asked to.
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
		if err := formats[c.Format](p.stdout, set); err != nil {
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
	return p.writePage(c.HTML, d, set)
}
