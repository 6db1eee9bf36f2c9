package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/advice"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report/chart"
	"github.com/siftkv/siftkv/internal/cli"
)

// adviseCommand is the command line of kvbench advise.
type adviseCommand struct {
	Store   cli.Directory `arg:"" help:"Directory of a SiftKV store that no process has open."`
	Trace   cli.File      `arg:"" help:"Trace of its lookups that lookuptrace.Tracer wrote."`
	Cache   bench.Size    `placeholder:"SIZE" help:"${advise_cache}"`
	Memory  bench.Size    `placeholder:"SIZE" help:"${advise_memory}"`
	Filter  []string      `sep:"none" placeholder:"SPECS" help:"${advise_filter}"`
	Device  time.Duration `placeholder:"TIME" help:"${advise_device}"`
	Lookups int           `default:"2000000" placeholder:"N" help:"${advise_lookups}"`
	Verify  bool          `help:"${advise_verify}"`
	Sweep   bool          `help:"${advise_sweep}"`
	Rows    int           `default:"20" placeholder:"N" help:"${advise_rows}"`
	HTML    resultFile    `name:"html" placeholder:"FILE" help:"Also write a page with charts; - prints it instead."`
	dirFlag
	jsonFlag
}

// Help shows examples.
func (adviseCommand) Help() string {
	return `The store is read, and nothing of it is changed.

Examples:
  kvbench advise /var/lib/app/store app.trace
  kvbench advise store app.trace --memory 256MiB --device 90us
  kvbench advise store app.trace --verify --html advice.html
  kvbench advise store app.trace --filter 'none blocked:10 ribbon:8' --sweep`
}

// Run predicts, measures if it is asked to, and prints.
func (c *adviseCommand) Run(ctx context.Context, p *program) error {
	err := bench.CheckBounds(bench.Bound{Flag: "--lookups", Value: int64(c.Lookups), Low: 1, High: 1 << 30},
		bench.Bound{Flag: "--device", Value: int64(c.Device), High: int64(time.Minute)})
	if err != nil {
		return err
	}
	var filters []string
	if len(c.Filter) > 0 {
		filters = specs(c.Filter)
	}
	r, err := advice.Advise(ctx, advice.Config{Store: string(c.Store), Trace: string(c.Trace), Cache: int64(c.Cache),
		Memory: int64(c.Memory), Filters: filters, Lookups: c.Lookups, Device: c.Device, Verify: c.Verify,
		Sweep: c.Sweep, Dir: c.Dir, Argv: p.argv, Progress: p.progress})
	if err != nil {
		return err
	}
	if !c.HTML.standard() {
		text := func(w io.Writer, r *advice.Result) error { return report.Advice(w, r, c.Rows) }
		if err := show(p, text, c.JSON)(r, nil); err != nil {
			return err
		}
	}
	if err := c.HTML.write(p.stdout, func(w io.Writer) error { return chart.WriteAdvice(w, r) }); err != nil {
		return err
	}
	if c.HTML != "" && !c.HTML.standard() {
		_, _ = fmt.Fprintf(p.stderr, "kvbench: wrote %s\n", c.HTML)
	}
	return nil
}
