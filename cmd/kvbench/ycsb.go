package main

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/report/chart"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/ycsb"
)

// ycsbCommand is the command line of kvbench ycsb.
type ycsbCommand struct {
	Engine    []string `default:"siftkv,pebble" placeholder:"NAMES" help:"${ycsb_engine}"`
	Workload  []string `default:"a,b,c,d,e,f,absent" placeholder:"LETTERS" help:"${ycsb_workload}"`
	Keys      int      `default:"1000000" placeholder:"N" help:"Records (default ${default})."`
	dataFlags `set:"valuesize=Bytes of a value, half of which compress (default 100). YCSB has 1000."`
	Ops       int     `default:"200000" placeholder:"N" help:"Operations of each workload (default ${default})."`
	Threads   int     `default:"1" placeholder:"N" help:"Goroutines (default ${default})."`
	Rate      float64 `default:"0" placeholder:"PER_SECOND" help:"${ycsb_rate}"`
	cacheFlag
	storeFlags
	compressionFlag
	HTML resultFile `name:"html" placeholder:"FILE" help:"${ycsb_html}"`
	dirFlag
	rowsFlags
}

// Run measures and prints.
func (c *ycsbCommand) Run(ctx context.Context, p *program) error {
	store := c.settings(c.Cache, c.Compression)
	store.BatchKeys = batchKeys / 10
	r, err := ycsb.Run(ctx, &ycsb.Config{
		Engines: c.Engine, Workloads: c.Workload,
		Settings: ycsb.Settings{
			Keys: c.Keys, KeySize: c.KeySize, ValueSize: c.ValueSize,
			Operations: c.Ops, Workers: c.Threads, Rate: c.Rate, Seed: c.Seed, Store: store,
		},
		Dir: c.Dir, Argv: p.argv, Progress: p.progress,
	})
	if err != nil {
		return err
	}
	if !c.HTML.IsStandard() {
		err = c.show(p)(r, nil)
	}
	return errors.Join(err, p.writePage(c.HTML, chart.YCSB(r), nil))
}
