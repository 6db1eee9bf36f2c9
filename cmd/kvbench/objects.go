package main

import (
	"context"
	"time"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/objects"
	"github.com/siftkv/siftkv/internal/bench/report"
)

// objectFilters are the filters that kvbench objects measures by default.
const objectFilters = "none;blocked:10;blocked:16;blocked:20;cuckoo:18"

// objectsCommand is the command line of kvbench objects.
type objectsCommand struct {
	Filter     []string      `default:"${objectfilters}" sep:"none" placeholder:"SPECS" help:"${objects_filter}"`
	Cache      []bench.Size  `default:"0,1MiB,64MiB" placeholder:"SIZES" help:"${objects_cache}"`
	Memory     bench.Size    `default:"4MiB" placeholder:"SIZE" help:"${objects_memory}"`
	Keys       int           `default:"300000" placeholder:"N" help:"Keys of a store (default ${default})."`
	Young      int           `default:"16" placeholder:"N" help:"${objects_young}"`
	TargetFile bench.Size    `default:"512KiB" placeholder:"SIZE" help:"Size of a sorted file (default ${default})."`
	Lookups    int           `default:"5000" placeholder:"N" help:"${objects_lookups}"`
	Delay      time.Duration `default:"10ms" placeholder:"TIME" help:"${objects_delay}"`
	GetPrice   float64       `default:"0.0004" placeholder:"DOLLARS" help:"Price of 1,000 GET (default ${default})."`
	PutPrice   float64       `default:"0.005" placeholder:"DOLLARS" help:"${objects_putprice}"`
	InMemory   bool          `help:"The object store is in memory, and not in a directory."`
	repsFlag   `set:"repetitions=50"`
	dataFlags
	compressionFlag
	dirFlag `set:"room=, about 300 MB for the defaults"`
	jsonFlag
}

// Run measures, prints the tables, and writes the JSON file if asked to.
func (c *objectsCommand) Run(ctx context.Context, p *program) error {
	caches := make([]int64, len(c.Cache))
	for i, size := range c.Cache {
		caches[i] = int64(size)
	}
	return show(p, report.Objects, c.JSON)(objects.Run(ctx, &objects.Config{
		Settings: objects.Settings{
			Filters: specs(c.Filter), Caches: caches, Keys: c.Keys, KeySize: c.KeySize, ValueSize: c.ValueSize,
			TargetFile: int64(c.TargetFile), Compression: c.Compression, Young: c.Young, Lookups: c.Lookups,
			Repetitions: c.Reps, Memory: int64(c.Memory), Delay: c.Delay, GetPrice: c.GetPrice, PutPrice: c.PutPrice,
			Seed: c.Seed,
		},
		Dir: c.Dir, InMemory: c.InMemory, Argv: p.argv, Progress: p.progress,
	}))
}
