package main

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/report"
	"github.com/siftkv/siftkv/internal/bench/ycsb"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// ycsbCommand is the command line of kvbench ycsb.
type ycsbCommand struct {
	Engines   []string   `default:"siftkv,pebble" placeholder:"NAMES" help:"Engines (default ${default}); choose from ${ycsbengines}."`
	Workload  []string   `default:"a,b,c,d,e,f,absent" placeholder:"LETTERS" help:"Workloads, in this order on one store per engine (default ${default}). absent, which YCSB lacks, asks for keys that are not there."`
	Keys      int        `default:"1000000" placeholder:"N" help:"Records (default ${default})."`
	KeySize   int        `default:"16" placeholder:"BYTES" help:"Bytes of a key (default ${default})."`
	ValueSize int        `default:"100" placeholder:"BYTES" help:"Bytes of a value, half compressible (default ${default}). YCSB has 1000."`
	Ops       int        `default:"200000" placeholder:"N" help:"Operations of each workload (default ${default})."`
	Workers   int        `default:"1" placeholder:"N" help:"Goroutines (default ${default})."`
	Rate      float64    `default:"0" placeholder:"PER_SECOND" help:"Operations per second of all workers, each due at its own time: latency counts from then, so that what a slow operation delays is counted (default 0: a closed loop)."`
	Cache     bench.Size `default:"64MiB" placeholder:"SIZE" help:"Block cache (default ${default})."`
	Memtable  bench.Size `default:"16MiB" placeholder:"SIZE" help:"Memtable (default ${default})."`
	BlockSize bench.Size `default:"4096" placeholder:"SIZE" help:"Data block before compression (default ${default} bytes)."`

	Compression string     `default:"snappy" placeholder:"NAME" help:"none, snappy or zstd (default ${default})."`
	Seed        uint64     `default:"1" placeholder:"N" help:"Seed (default ${default})."`
	JSON        resultFile `name:"json" placeholder:"FILE" help:"Also write the result to FILE; - prints it in place of the text."`
	SVG         resultDir  `name:"svg" placeholder:"DIR" help:"Also draw operations per second over time, with flushes, compactions and stalls, as an SVG file per workload in DIR."`
	Dir         string     `placeholder:"DIR" help:"Where to make the temporary stores (default: the system's temporary directory)."`
	Progress    string     `default:"auto" enum:"auto,plain,none" placeholder:"MODE" help:"Progress on standard error: auto, plain or none (default ${default})."`
}

// Help shows examples.
func (ycsbCommand) Help() string {
	return `Examples:
  kvbench ycsb
  kvbench ycsb --workload a,f --engines siftkv --workers 8
  kvbench ycsb --workload a --svg charts                 what flushes and compactions do to it
  kvbench ycsb --workload b --rate 50000 --workers 4     open loop`
}

// Run measures and prints.
func (c *ycsbCommand) Run(ctx context.Context, p *program) error {
	if err := c.SVG.prepare("--svg"); err != nil {
		return err
	}
	r, err := ycsb.Run(ctx, &ycsb.Config{
		Engines: c.Engines, Workloads: c.Workload, Keys: c.Keys, KeySize: c.KeySize, ValueSize: c.ValueSize,
		Operations: c.Ops, Workers: c.Workers, Rate: c.Rate, Seed: c.Seed,
		Store: engine.Settings{
			CacheBytes: int64(c.Cache), MemtableBytes: int64(c.Memtable), BlockBytes: int(c.BlockSize),
			Compression: c.Compression, Compactions: 2, BatchKeys: batchKeys / 10,
		},
		Dir: c.Dir, Argv: p.argv, Progress: progress.New(p.stderr, c.Progress),
	})
	if err != nil {
		return err
	}
	return errors.Join(show(p, report.YCSB, r, c.JSON), c.SVG.draw(p, report.YCSBCharts(r)))
}
