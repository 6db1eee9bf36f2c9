package main

import (
	"context"

	"github.com/siftkv/siftkv/internal/bench/filters"
	"github.com/siftkv/siftkv/internal/bench/readamp"
	"github.com/siftkv/siftkv/internal/bench/report"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// filtersCommand is the command line of kvbench filters.
type filtersCommand struct {
	Keys      []int      `default:"100000,1000000" placeholder:"N,..." help:"Numbers of keys, a table each (default ${default}). Example: --keys 100000,1000000,10000000."`
	Filters   []string   `default:"${families}" sep:"none" placeholder:"SPECS" help:"Filters of this project (default ${default}). Separate by spaces or semicolons, or repeat the flag."`
	Libraries bool       `default:"true" negatable:"" help:"Also measure the libraries that one would otherwise pick."`
	Probes    int        `default:"1000000" placeholder:"N" help:"Absent keys to ask for, and lookups to time, per filter (default ${default})."`
	Reps      int        `default:"3" placeholder:"N" help:"Repetitions; times are their median (default ${default})."`
	Seed      uint64     `default:"1" placeholder:"N" help:"Seed of all keys (default ${default})."`
	JSON      resultFile `name:"json" placeholder:"FILE" help:"Also write the result to FILE; - prints it in place of the text."`
	Progress  string     `default:"auto" enum:"auto,plain,none" placeholder:"MODE" help:"Progress on standard error: auto, plain or none (default ${default})."`
}

// Run measures, prints the tables, and writes the JSON file if asked to.
func (c *filtersCommand) Run(ctx context.Context, p *program) error {
	result, err := filters.Run(ctx, &filters.Config{
		Keys: c.Keys, Filters: readamp.SplitSpecs(c.Filters), Libraries: c.Libraries,
		Probes: c.Probes, Repetitions: c.Reps, Seed: c.Seed,
		Argv: p.argv, Progress: progress.New(p.stderr, c.Progress),
	})
	if err != nil {
		return err
	}
	return show(p, report.Filters, result, c.JSON)
}
