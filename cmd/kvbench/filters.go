package main

import (
	"context"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/filters"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/ranges"
)

// families are the filters that kvbench filters measures by default.
const families = "bloom:10;blocked:10;blocked:16;cuckoo:12;cuckoo:12,4,semisort;xor:8;fuse:8;fuse:8,4;ribbon:7;" +
	"gcs:7;quotient:7"

// rangeFamilies are the range filters that kvbench filters --ranges measures by default.
const rangeFamilies = "cut:4;cut:6;cut:8"

// filtersCommand is the command line of kvbench filters.
type filtersCommand struct {
	Keys      []int    `default:"100000,1000000" placeholder:"N" help:"${filters_keys}"`
	Filter    []string `sep:"none" placeholder:"SPECS" help:"${filters_filter}"`
	Ranges    bool     `help:"${filters_ranges}"`
	Sets      []string `default:"random,names,urls,series" placeholder:"SETS" help:"${filters_sets}"`
	Libraries bool     `default:"true" negatable:"" help:"Also measure the libraries that one would otherwise pick."`
	Probes    int      `placeholder:"N" help:"${filters_probes}"`
	repsFlag  `set:"repetitions=3"`
	Seed      uint64 `default:"1" placeholder:"N" help:"Seed of all keys (default ${default})."`
	rowsFlags
}

// Run measures, prints the tables, and writes the JSON file if asked to.
func (c *filtersCommand) Run(ctx context.Context, p *program) error {
	if c.Ranges {
		return c.runRanges(ctx, p)
	}
	c.otherwise(1_000_000, families)
	return c.show(p)(filters.Run(ctx, &filters.Config{
		Probing: c.probing(), Filters: specs(c.Filter), Libraries: c.Libraries, Argv: p.argv, Progress: p.progress,
	}))
}

// otherwise sets the probes and filters that are not given.
func (c *filtersCommand) otherwise(probes int, families string) {
	if c.Probes == 0 {
		c.Probes = probes
	}
	if len(c.Filter) == 0 {
		c.Filter = []string{families}
	}
}

// probing returns what both have in common.
func (c *filtersCommand) probing() bench.Probing {
	return bench.Probing{Keys: c.Keys, Probes: c.Probes, Repetitions: c.Reps, Seed: c.Seed}
}

// runRanges is Run for range filters.
func (c *filtersCommand) runRanges(ctx context.Context, p *program) error {
	c.otherwise(50_000, rangeFamilies)
	return c.show(p)(ranges.Run(ctx, &ranges.Config{
		Probing: c.probing(), Sets: c.Sets, Filters: specs(c.Filter), Argv: p.argv, Progress: p.progress,
	}))
}
