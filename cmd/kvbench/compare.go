package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
)

// compareCommand is the command line of kvbench compare.
type compareCommand struct {
	Engine   []string `placeholder:"NAMES" help:"${compare_engine}"`
	Workload []string `default:"${workloads}" placeholder:"NAMES" help:"${compare_workload}"`
	Keys     int      `default:"3000000" placeholder:"N" help:"Keys to load (default ${default})."`
	Reps     int      `default:"5" placeholder:"N" help:"${compare_reps}"`
	Loads    int      `default:"1" placeholder:"N" help:"${compare_loads}"`
	secondsFlag
	dataFlags
	Cache bench.Size `default:"64MiB" placeholder:"SIZE" help:"${compare_cache}"`
	storeFlags
	Compression []string `default:"snappy,none" placeholder:"NAMES" help:"${compare_compression}"`
	largeFlags
	dirFlag `set:"room=, about 1.7 GB for a million keys and both compressions"`
	rowsFlags
}

// largeFlags are about the workloads of large values.
type largeFlags struct {
	LargeSize    bench.Size `default:"16KiB" placeholder:"SIZE" help:"Bytes of a large value (default ${default})."`
	LargeValues  string     `default:"random" placeholder:"KIND" help:"${compare_largevalues}"`
	LargeData    bench.Size `default:"256MiB" placeholder:"SIZE" help:"${compare_largedata}"`
	Minutes      float64    `default:"0.5" placeholder:"N" help:"${compare_minutes}"`
	SeparateFrom bench.Size `default:"4KiB" placeholder:"SIZE" help:"${compare_separate}"`
	BlobSpace    float64    `default:"1.5" placeholder:"RATIO" help:"${compare_blobspace}"`
}

// engines returns those to compare: what was asked for, or what the workloads are about.
func (c *compareCommand) engines() []string {
	if !slices.ContainsFunc(c.Workload, func(name string) bool { return !compare.IsLarge(name) }) {
		return orElse(c.Engine, compare.LargeEngines()...)
	}
	return orElse(c.Engine, compared...)
}

// compared are the engines of compare, if nobody says.
var compared = []string{"siftkv", "pebble", "badger", "goleveldb", "bbolt"}

// Run compares, prints the tables, and writes the JSON file if asked to.
func (c *compareCommand) Run(ctx context.Context, p *program) error {
	store := c.settings(c.Cache, "")
	store.SeparateFrom, store.BlobSpace = int(c.SeparateFrom), c.BlobSpace
	return c.show(p)(compare.Run(ctx, &compare.Config{
		Settings: compare.Settings{
			Engines: c.engines(), Workloads: c.Workload, Compressions: c.Compression,
			Keys: c.Keys, KeySize: c.KeySize, ValueSize: c.ValueSize,
			Repetitions: c.Reps, Loads: c.Loads, Seconds: c.Seconds, Seed: c.Seed, Store: store,
			Large: compare.Large{ValueSize: int(c.LargeSize), Values: c.LargeValues, Data: int64(c.LargeData),
				Minutes: c.Minutes},
		},
		Setup: c.setup(p),
	}))
}

// setup returns what experiments need of this program, which is its own worker.
func (f *dirFlag) setup(p *program) compare.Setup {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return compare.Setup{Dir: f.Dir, Argv: p.argv, Progress: p.progress, Worker: []string{self, "worker"}}
}

// workerCommand is what compare runs itself as.
type workerCommand struct{}

// Run serves the parent. An interrupt from the terminal, or its end, reaches the whole
// group of processes; the parent acts on it.
func (c *workerCommand) Run(_ context.Context, p *program) error {
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	return compare.Serve(context.Background(), os.Stdin, p.stdout, nil)
}
