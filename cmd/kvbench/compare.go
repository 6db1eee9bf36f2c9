package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/compare"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/report"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// compareCommand is the command line of kvbench compare.
type compareCommand struct {
	Engines   []string `default:"siftkv,pebble,badger,goleveldb,bbolt" placeholder:"NAMES" help:"Engines, each in a process of its own (default ${default}); the first is compared with each other. Also: pebble-iterator (lookups by one iterator with last-level filters), rocksdb (if built with the tag rocksdb)."`
	Workload  []string `default:"${workloads}" placeholder:"NAMES" help:"Workloads (default all): ${workloadlist}. Example: --workload absent,zipf."`
	Keys      int      `default:"3000000" placeholder:"N" help:"Keys to load (default ${default})."`
	KeySize   int      `default:"16" placeholder:"BYTES" help:"Bytes of a key (default ${default})."`
	ValueSize int      `default:"100" placeholder:"BYTES" help:"Bytes of a value, half compressible (default ${default})."`
	Reps      int      `default:"5" placeholder:"N" help:"Repetitions of each workload but the load (default ${default}): every engine in turn, in another order each time."`
	Loads     int      `default:"1" placeholder:"N" help:"Repetitions of the load (default ${default}); bbolt has one."`
	Seconds   float64  `default:"0.5" placeholder:"S" help:"Seconds of each workload, engine and repetition (default ${default})."`
	Seed      uint64   `default:"1" placeholder:"N" help:"Seed of keys, values and all random orders (default ${default})."`

	Cache       bench.Size `default:"64MiB" placeholder:"SIZE" help:"Block cache of each store (default ${default}); workloads that say otherwise have a tenth or twice the data."`
	Memtable    bench.Size `default:"16MiB" placeholder:"SIZE" help:"Memtable of each store (default ${default})."`
	BlockSize   bench.Size `default:"4096" placeholder:"SIZE" help:"Data block before compression (default ${default} bytes)."`
	Compression []string   `default:"snappy,none" placeholder:"NAMES" help:"Compressions (default ${default}); bbolt has none. Workloads that write run with the first."`
	Compactions int        `default:"2" placeholder:"N" help:"Concurrent compactions at most, in each store (default ${default})."`

	Dir      string     `placeholder:"DIR" help:"Where to make the temporary stores, about 1.7 GB for a million keys and both compressions; they are removed at the end (default: the system's temporary directory)."`
	JSON     resultFile `name:"json" placeholder:"FILE" help:"Also write the result with all settings, the environment and every repetition to FILE; - prints it in place of the text."`
	Progress string     `default:"auto" enum:"auto,plain,none" placeholder:"MODE" help:"Progress on standard error: auto, plain or none (default ${default})."`
}

// Run compares, prints the tables, and writes the JSON file if asked to.
func (c *compareCommand) Run(ctx context.Context, p *program) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	result, err := compare.Run(ctx, &compare.Config{
		Engines: c.Engines, Workloads: c.Workload, Compressions: c.Compression,
		Keys: c.Keys, KeySize: c.KeySize, ValueSize: c.ValueSize,
		Repetitions: c.Reps, Loads: c.Loads, Seconds: c.Seconds, Seed: c.Seed,
		Store: engine.Settings{
			CacheBytes: int64(c.Cache), MemtableBytes: int64(c.Memtable), BlockBytes: int(c.BlockSize),
			Compactions: c.Compactions,
		},
		Dir: c.Dir, Argv: p.argv, Progress: progress.New(p.stderr, c.Progress), Worker: []string{self, "worker"},
	})
	if err != nil {
		return err
	}
	return show(p, report.Compare, result, c.JSON)
}

// workerCommand is what compare runs itself as.
type workerCommand struct{}

// Run serves the parent. An interrupt from the terminal, or its end, reaches the whole
// group of processes; it is the parent's to act on.
func (c *workerCommand) Run(_ context.Context, p *program) error {
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	return compare.Serve(context.Background(), os.Stdin, p.stdout, nil)
}
