package main

import (
	"context"

	"github.com/siftkv/siftkv/internal/bench/compare"
	"github.com/siftkv/siftkv/internal/bench/report"
)

// scaleCommand is the command line of kvbench scale.
type scaleCommand struct {
	Keys       int      `aliases:"max" default:"10000000" placeholder:"N" help:"${scale_keys}"`
	Engine     []string `aliases:"engines" default:"siftkv" placeholder:"NAMES" help:"${scale_engine}"`
	CacheShare float64  `default:"0.1" placeholder:"PART" help:"${scale_cacheshare}"`
	repsFlag
	secondsFlag
	dataFlags
	storeFlags
	compressionFlag `set:"compressions=none, snappy"`
	dirFlag         `set:"room=, about 150 bytes per key at most while a store is settled"`
	jsonFlag
}

// Run measures, prints the tables, and writes the JSON file if asked to.
func (c *scaleCommand) Run(ctx context.Context, p *program) error {
	return show(p, report.Scale, c.JSON)(compare.Scale(ctx, &compare.ScaleConfig{
		Engines: c.Engine, Sizes: compare.Sizes(c.Keys),
		ScaleSettings: compare.ScaleSettings{
			KeySize: c.KeySize, ValueSize: c.ValueSize, CacheShare: c.CacheShare,
			Repetitions: c.Reps, Seconds: c.Seconds, Seed: c.Seed, Store: c.settings(0, c.Compression),
		},
		Dir: c.Dir, Argv: p.argv, Progress: p.progress, Worker: worker(),
	}))
}
