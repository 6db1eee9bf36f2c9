package main

import (
	"cmp"
	"context"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
)

// scaleCommand is the command line of kvbench scale.
type scaleCommand struct {
	Keys       int      `placeholder:"N" help:"${scale_keys}"`
	Engine     []string `placeholder:"NAMES" help:"${scale_engine}"`
	CacheShare float64  `default:"0.1" placeholder:"PART" help:"${scale_cacheshare}"`

	Cold    bool       `help:"${scale_cold}"`
	Memory  bench.Size `default:"512MiB" placeholder:"SIZE" help:"${scale_memory}"`
	Variant []string   `sep:"none" placeholder:"WORDS" help:"${scale_variant}"`
	Lookups int        `default:"50000" placeholder:"N" help:"${scale_lookups}"`

	Procs      []int `placeholder:"N" help:"${scale_procs}"`
	Goroutines []int `default:"1,8,64,1024" placeholder:"N" help:"${scale_goroutines}"`

	repsFlag
	secondsFlag
	dataFlags
	storeFlags
	compressionFlag `set:"compressions=none, snappy"`
	dirFlag         `set:"room=, about 150 bytes per key at most while a store is settled"`
	rowsFlags
}

// Run measures, prints the tables, and writes the JSON file if asked to.
func (c *scaleCommand) Run(ctx context.Context, p *program) error {
	switch {
	case c.Cold && len(c.Procs) > 0:
		return bench.Usagef("--cold and --procs are two experiments: choose one")
	case c.Cold:
		return c.cold(ctx, p)
	case len(c.Procs) > 0:
		return c.contend(ctx, p)
	}
	return c.show(p)(compare.Scale(ctx, &compare.ScaleConfig{
		Engines: orElse(c.Engine, "siftkv"), Sizes: compare.Sizes(cmp.Or(c.Keys, scaleKeys)),
		ScaleSettings: compare.ScaleSettings{
			KeySize: c.KeySize, ValueSize: c.ValueSize, CacheShare: c.CacheShare,
			Repetitions: c.Reps, Seconds: c.Seconds, Seed: c.Seed, Store: c.settings(0, c.Compression),
		},
		Setup: c.setup(p),
	}))
}

// Numbers of keys if none is given.
const (
	scaleKeys   = 10_000_000
	contendKeys = 1_000_000
)

// contend measures many goroutines under several numbers of processors.
func (c *scaleCommand) contend(ctx context.Context, p *program) error {
	return c.show(p)(compare.Contend(ctx, &compare.ContendConfig{
		ContendSettings: compare.ContendSettings{
			Engines: orElse(c.Engine, "siftkv", "pebble"), Procs: c.Procs, Goroutines: c.Goroutines,
			Keys: cmp.Or(c.Keys, contendKeys), KeySize: c.KeySize, ValueSize: c.ValueSize, Repetitions: c.Reps,
			Seconds: c.Seconds, Seed: c.Seed, Store: c.settings(0, c.Compression),
		},
		Setup: c.setup(p),
	}))
}

// cold measures stores that are larger than memory.
func (c *scaleCommand) cold(ctx context.Context, p *program) error {
	return c.show(p)(compare.Cold(ctx, &compare.ColdConfig{
		ColdSettings: compare.ColdSettings{
			Engines: orElse(c.Engine, "siftkv", "pebble"), Variants: orElse(specs(c.Variant), coldVariants...),
			Sizes: compare.ColdSizes(cmp.Or(c.Keys, scaleKeys)), KeySize: c.KeySize, ValueSize: c.ValueSize,
			Memory: int64(c.Memory), Lookups: c.Lookups, Seed: c.Seed, Store: c.settings(0, c.Compression),
		},
		Setup: c.setup(p),
	}))
}

// coldVariants are what SiftKV is measured with if nothing else is asked for.
var coldVariants = []string{compare.UsualVariant, "ribbon:8", "budget:10", "index:64KiB"}

// orElse returns what was given, or the default of it.
func orElse(given []string, usual ...string) []string {
	if len(given) == 0 {
		return usual
	}
	return given
}
