package main

import (
	"context"

	"github.com/siftkv/siftkv/internal/bench/filters"
	"github.com/siftkv/siftkv/internal/bench/report"
)

// families are the filters that kvbench filters measures by default.
const families = "bloom:10;blocked:10;blocked:16;cuckoo:12;cuckoo:12,4,semisort;xor:8;fuse:8;fuse:8,4;ribbon:7;" +
	"gcs:7;quotient:7"

// filtersCommand is the command line of kvbench filters.
type filtersCommand struct {
	Keys      []int    `default:"100000,1000000" placeholder:"N" help:"${filters_keys}"`
	Filter    []string `aliases:"filters" default:"${families}" sep:"none" placeholder:"SPECS" help:"${filters_filter}"`
	Libraries bool     `default:"true" negatable:"" help:"Also measure the libraries that one would otherwise pick."`
	Probes    int      `default:"1000000" placeholder:"N" help:"${filters_probes}"`
	repsFlag  `set:"repetitions=3"`
	Seed      uint64 `default:"1" placeholder:"N" help:"Seed of all keys (default ${default})."`
	jsonFlag
}

// Run measures, prints the tables, and writes the JSON file if asked to.
func (c *filtersCommand) Run(ctx context.Context, p *program) error {
	return show(p, report.Filters, c.JSON)(filters.Run(ctx, &filters.Config{
		Keys: c.Keys, Filters: specs(c.Filter), Libraries: c.Libraries,
		Settings: filters.Settings{Probes: c.Probes, Repetitions: c.Reps, Seed: c.Seed},
		Argv:     p.argv, Progress: p.progress,
	}))
}
