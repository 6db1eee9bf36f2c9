package main

import (
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/sweep"
)

// cellFlags are the settings of cells, one value each or several. What is not given has
// the default of cell.Default.
type cellFlags struct {
	Engine     []string `placeholder:"NAMES" help:"Engines: siftkv (default), pebble, pebble-iterator (one iterator that consults last-level filters), badger, goleveldb, bbolt (times only), rocksdb (if built with the tag rocksdb), null (what the harness costs)." group:"Settings of a cell"`
	Filter     []string `sep:"none" placeholder:"SPECS" help:"Filters (default blocked:10), separated by spaces or semicolons: none; oracle (never errs); a filter of this project, such as bloom:10 or cuckoo:12,4; own:10 (the engine's own Bloom filter, 10 bits per key); of rocksdb bloom:10 and ribbon:10." group:"Settings of a cell"`
	Budget     []string `placeholder:"NAMES" help:"Filter memory: uniform (default: every key has the bits that the filter names) or spread (as many bits in all, spread over the levels so that lookups read least)." group:"Settings of a cell"`
	Index      []string `placeholder:"SIZES" help:"Size at which siftkv and pebble split a file's index in two levels, of which the lower is read on demand (default 0: their defaults, 1 MiB and the size of a data block). Example: --index 4KiB,1MiB." group:"Settings of a cell"`
	Compaction []string `placeholder:"NAMES" help:"Compaction: ${compactions} (default ${compaction})." group:"Settings of a cell"`
	Shape      []string `placeholder:"NAMES" help:"Tree: settled (default: all in one level), grown (several levels, as a store in use has them), young:N (settled, under N young files)." group:"Settings of a cell"`
	Cache      []string `placeholder:"SIZES" help:"Block cache (default 64MiB). Example: --cache 1MiB,8MiB,64MiB." group:"Settings of a cell"`
	Memtable   []string `placeholder:"SIZES" help:"Memtable (default 16MiB)." group:"Settings of a cell"`
	Block      []string `placeholder:"SIZES" help:"Data block before compression (default 4096)." group:"Settings of a cell"`

	Compression []string `placeholder:"NAMES" help:"Compression: none, snappy (default), zstd." group:"Settings of a cell"`
	Keys        []string `placeholder:"N|FILE" help:"Numbers of generated keys (default 1000000), or files with one key per line, see readamp, or with a lookup trace, see trace." group:"Settings of a cell"`
	KeySize     []string `placeholder:"BYTES" help:"Bytes of a generated key (default 16)." group:"Settings of a cell"`
	Fill        []string `placeholder:"N" help:"Keys that are there beside those of a trace, look like them, and are never looked up (default 0)." group:"Settings of a cell"`
	ValueSize   []string `placeholder:"BYTES" help:"Bytes of a value (default 100)." group:"Settings of a cell"`
	DataSeed    []string `placeholder:"N" help:"Seed of keys, values and the tree (default 1)." group:"Settings of a cell"`
	Workload    []string `placeholder:"NAMES" help:"Which keys are asked for: uniform (default), zipfian, zipfian:SKEW, replay (what the trace given as --keys asked for)." group:"Settings of a cell"`
	Pace        []string `placeholder:"SPEEDS" help:"Of workload replay: none (default: as fast as it goes), or lookups with the recorded intervals at so many times the speed, such as 1 or 10; latency counts from when a lookup was due." group:"Settings of a cell"`
	State       []string `placeholder:"NAMES" help:"Caches: warm (default: after a pass of lookups) or cold (the store is reopened and its files are dropped from the page cache before each loop)." group:"Settings of a cell"`
	Threads     []string `placeholder:"N" help:"Workers that look keys up at the same time, and share the lookups (default 1)." group:"Settings of a cell"`
	Lookups     []string `placeholder:"N" help:"Timed lookups of existing and of absent keys, each, per repetition, by all workers together (default 40000)." group:"Settings of a cell"`
	Reps        []string `placeholder:"N" help:"Repetitions (default 5)." group:"Settings of a cell"`
	Seed        []string `placeholder:"N" help:"Seed of the lookups (default 1)." group:"Settings of a cell"`
}

// block returns what was given.
func (f *cellFlags) block() sweep.Block {
	b := sweep.Block{}
	for name, given := range map[string][]string{
		"engine": f.Engine, "filter": specs(f.Filter), "budget": f.Budget, "index": f.Index,
		"compaction": f.Compaction, "shape": f.Shape, "cache": f.Cache, "memtable": f.Memtable,
		"block": f.Block, "compression": f.Compression, "keys": f.Keys, "key-size": f.KeySize,
		"fill": f.Fill, "value-size": f.ValueSize, "data-seed": f.DataSeed, "workload": f.Workload, "pace": f.Pace,
		"state": f.State, "threads": f.Threads,
		"lookups": f.Lookups, "reps": f.Reps, "seed": f.Seed,
	} {
		if len(given) > 0 {
			b[name] = given
		}
	}
	return b
}

// specs splits filters at spaces and semicolons, and at commas that begin another
// filter and not another parameter of one.
func specs(texts []string) []string {
	var out []string
	for _, text := range texts {
		for _, field := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == ' ' || r == '\t' }) {
			for part := range strings.SplitSeq(field, ",") {
				last := len(out) - 1
				parameter := part == "semisort" || part != "" && part[0] >= '0' && part[0] <= '9'
				if parameter && last >= 0 && strings.Contains(out[last], ":") {
					out[last] += "," + part
					continue
				}
				out = append(out, part)
			}
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// one returns the block if there is one value of each setting.
func (f *cellFlags) one() (sweep.Block, error) {
	b := f.block()
	for name, given := range b {
		if len(given) > 1 {
			return nil, bench.Usagef("--%s: %d values are given, and run measures one cell; kvbench sweep measures many", name, len(given))
		}
	}
	return b, nil
}
