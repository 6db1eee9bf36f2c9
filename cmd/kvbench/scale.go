package main

import (
	"context"
	"os"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/report"
	"github.com/siftkv/siftkv/internal/bench/scale"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// scaleCommand is the command line of kvbench scale.
type scaleCommand struct {
	Max        int      `default:"10000000" placeholder:"N" help:"The most keys (default ${default}): stores of 300,000, 1, 3, 10, 30 and 100 million keys up to this many are made one after the other. Example: --max 30000000 (about 5 GB of disk, 20 minutes)."`
	Engines    []string `default:"siftkv" placeholder:"NAMES" help:"Engines (default ${default}), of: ${peers}. Example: --engines siftkv,bbolt."`
	KeySize    int      `default:"16" placeholder:"BYTES" help:"Bytes of a key (default ${default})."`
	ValueSize  int      `default:"100" placeholder:"BYTES" help:"Bytes of a value, half compressible (default ${default})."`
	CacheShare float64  `default:"0.1" placeholder:"PART" help:"Block cache as a part of the data, the same for every number of keys (default ${default})."`
	Reps       int      `default:"5" placeholder:"N" help:"Repetitions; times are their median (default ${default})."`
	Seconds    float64  `default:"0.5" placeholder:"S" help:"Seconds of each kind of lookup and repetition (default ${default})."`
	Seed       uint64   `default:"1" placeholder:"N" help:"Seed of keys, values and all random orders (default ${default})."`

	Memtable    bench.Size `default:"16MiB" placeholder:"SIZE" help:"Memtable of each store (default ${default})."`
	BlockSize   bench.Size `default:"4096" placeholder:"SIZE" help:"Data block before compression (default ${default} bytes)."`
	Compression string     `default:"snappy" placeholder:"NAME" help:"Compression of blocks: none or snappy (default ${default})."`
	Compactions int        `default:"2" placeholder:"N" help:"Concurrent compactions at most (default ${default})."`

	Dir      string     `placeholder:"DIR" help:"Where to make the temporary store, about 150 bytes per key at most while it is settled; it is removed at the end (default: the system's temporary directory)."`
	JSON     resultFile `name:"json" placeholder:"FILE" help:"Also write the result to FILE; - prints it in place of the text."`
	Progress string     `default:"auto" enum:"auto,plain,none" placeholder:"MODE" help:"Progress on standard error: auto, plain or none (default ${default})."`
}

// Run measures, prints the tables, and writes the JSON file if asked to.
func (c *scaleCommand) Run(ctx context.Context, p *program) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	result, err := scale.Run(ctx, &scale.Config{
		Engines: c.Engines, Sizes: scale.Sizes(c.Max), KeySize: c.KeySize, ValueSize: c.ValueSize,
		CacheShare:  c.CacheShare,
		Repetitions: c.Reps, Seconds: c.Seconds, Seed: c.Seed,
		Store: engine.Settings{MemtableBytes: int64(c.Memtable), BlockBytes: int(c.BlockSize),
			Compression: c.Compression, Compactions: c.Compactions},
		Dir: c.Dir, Argv: p.argv, Progress: progress.New(p.stderr, c.Progress), Worker: []string{self, "worker"},
	})
	if err != nil {
		return err
	}
	return show(p, report.Scale, result, c.JSON)
}
