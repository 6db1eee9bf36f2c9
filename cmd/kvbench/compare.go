package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/compare"
	"github.com/siftkv/siftkv/internal/bench/report"
)

// compareCommand is the command line of kvbench compare.
type compareCommand struct {
	Engine   []string `aliases:"engines" default:"${compared}" placeholder:"NAMES" help:"${compare_engine}"`
	Workload []string `default:"${workloads}" placeholder:"NAMES" help:"${compare_workload}"`
	Keys     int      `default:"3000000" placeholder:"N" help:"Keys to load (default ${default})."`
	Reps     int      `default:"5" placeholder:"N" help:"${compare_reps}"`
	Loads    int      `default:"1" placeholder:"N" help:"${compare_loads}"`
	secondsFlag
	dataFlags
	Cache bench.Size `default:"64MiB" placeholder:"SIZE" help:"${compare_cache}"`
	storeFlags
	Compression []string `default:"snappy,none" placeholder:"NAMES" help:"${compare_compression}"`
	dirFlag     `set:"room=, about 1.7 GB for a million keys and both compressions"`
	jsonFlag
}

// Run compares, prints the tables, and writes the JSON file if asked to.
func (c *compareCommand) Run(ctx context.Context, p *program) error {
	return show(p, report.Compare, c.JSON)(compare.Run(ctx, &compare.Config{
		Settings: compare.Settings{
			Engines: c.Engine, Workloads: c.Workload, Compressions: c.Compression,
			Keys: c.Keys, KeySize: c.KeySize, ValueSize: c.ValueSize,
			Repetitions: c.Reps, Loads: c.Loads, Seconds: c.Seconds, Seed: c.Seed, Store: c.settings(c.Cache, ""),
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
