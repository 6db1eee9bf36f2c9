package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/bench/cell"
	"github.com/siftkv/siftkv/internal/bench/report"
	"github.com/siftkv/siftkv/internal/bench/report/chart"
	"github.com/siftkv/siftkv/internal/bench/report/page"
	"github.com/siftkv/siftkv/internal/bench/results"
)

// reportCommand is the command line of kvbench report.
type reportCommand struct {
	Results string `arg:"" help:"A directory of results, or a file."`
	Format  string `default:"table" enum:"table,markdown,csv,benchstat,json" placeholder:"NAME" help:"What to print: table, markdown, csv (tidy: a line per number), benchstat (input of benchstat) or json (an array of the results) (default ${default})."`
	HTML    string `name:"html" placeholder:"FILE" help:"Also write one page with charts, tables and the data, which needs no network."`
	SVG     string `name:"svg" placeholder:"DIR" help:"Also write each chart as an SVG file to DIR."`
	Title   string `default:"kvbench" placeholder:"TEXT" help:"Title of the page, and of the chart of one table, whose file is called by it."`

	pivotFlags
}

// defaultTitle is the title if none is given.
const defaultTitle = "kvbench"

// Help shows examples.
func (reportCommand) Help() string {
	return `Examples:
  kvbench report results
  kvbench report results --html report.html --svg charts
  kvbench report results --format csv > results.csv
  kvbench report results --metric 'absent blocks/op' --rows engine,filter --columns shape
  kvbench report results --metric 'absent disk-blocks/op' --rows filter --columns cache --where engine=siftkv --format markdown --svg charts
  kvbench report results-a --format benchstat > a.txt; kvbench report results-b --format benchstat > b.txt; benchstat a.txt b.txt`
}

// formats print a set.
var formats = map[string]func(io.Writer, []*cell.Result) error{
	"table": report.Cells, "markdown": report.CellsMarkdown, "csv": report.CellsCSV, "benchstat": report.CellsBenchfmt,
	"json": func(w io.Writer, set []*cell.Result) error {
		data, err := report.JSON(set)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	},
}

// Run prints the results, and writes the page and the charts if asked to.
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
	if err := formats[c.Format](p.stdout, set); err != nil {
		return err
	}
	if c.HTML != "" {
		if err := writeFile(c.HTML, func(w io.Writer) error { return page.Write(w, c.Title, set) }); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(p.stderr, "kvbench: wrote %s\n", c.HTML)
	}
	if c.SVG == "" {
		return nil
	}
	labels := report.NewLabels(set)
	texts := make([]string, len(set))
	for i := range set {
		texts[i] = labels.Text(i)
	}
	return p.draw(c.SVG, chart.All(set, texts))
}

// draw writes each chart to a file of its own in dir, which it makes.
func (p *program) draw(dir string, charts []chart.Chart) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, one := range charts {
		path := filepath.Join(dir, one.ID+".svg")
		if err := writeFile(path, func(w io.Writer) error { return chart.SVG(w, &one) }); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(p.stderr, "kvbench: wrote %s\n", path)
	}
	return nil
}

// writeFile writes a file and reports every error.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
