package main

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/sweep"
)

// cellFlags are the settings of cells under the names of cell.Fields, one value each or
// several. What is not given has the default of cell.Default.
type cellFlags struct {
	Engine      []string `placeholder:"NAMES" help:"${cells_engine}"`
	Filter      []string `sep:"none" placeholder:"SPECS" help:"${cells_filter}"`
	Range       []string `placeholder:"SPECS" help:"${cells_range}"`
	Budget      []string `placeholder:"NAMES" help:"${cells_budget}"`
	Index       []string `placeholder:"SIZES" help:"${cells_index}"`
	Compaction  []string `placeholder:"NAMES" help:"Compaction: ${compactions} (default ${style})."`
	Shape       []string `placeholder:"NAMES" help:"${cells_shape}"`
	Cache       []string `placeholder:"SIZES" help:"Block cache (default 64MiB). Example: --cache 1MiB,8MiB,64MiB."`
	Memtable    []string `placeholder:"SIZES" help:"Memtable (default 16MiB)."`
	Block       []string `placeholder:"SIZES" help:"Data block before compression (default 4096)."`
	Compression []string `placeholder:"NAMES" help:"Compression: none, snappy (default), zstd."`
	Keys        []string `placeholder:"N|FILE" help:"${cells_keys}"`
	KeySize     []string `name:"key-size" placeholder:"BYTES" help:"Bytes of a generated key (default 16)."`
	Fill        []string `placeholder:"N" help:"${cells_fill}"`
	ValueSize   []string `name:"value-size" placeholder:"BYTES" help:"Bytes of a value (default 100)."`
	Values      []string `placeholder:"KINDS" help:"${cells_values}"`
	Separate    []string `name:"separate-from" placeholder:"SIZES" help:"${cells_separate}"`
	BlobSpace   []string `name:"blob-space" placeholder:"RATIOS" help:"${cells_blobspace}"`
	AtCommit    []string `name:"at-commit" placeholder:"NO|YES" help:"${cells_atcommit}"`
	DataSeed    []string `name:"data-seed" placeholder:"N" help:"Seed of keys, values and the tree (default 1)."`
	Workload    []string `placeholder:"NAMES" help:"${cells_workload}"`
	Scan        []string `placeholder:"KINDS" help:"${cells_scan}"`
	Pace        []string `placeholder:"SPEEDS" help:"${cells_pace}"`
	State       []string `placeholder:"NAMES" help:"${cells_state}"`
	Threads     []string `placeholder:"N" help:"${cells_threads}"`
	Lookups     []string `placeholder:"N" help:"${cells_lookups}"`
	Reps        []string `placeholder:"N" help:"Repetitions (default 5)."`
	Seed        []string `placeholder:"N" help:"Seed of the lookups (default 1)."`
}

// block returns what was given.
func (f *cellFlags) block() sweep.Block {
	f.Filter = specs(f.Filter)
	b, v := sweep.Block{}, reflect.ValueOf(*f)
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if given := v.Field(i).Interface().([]string); len(given) > 0 {
			b[cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name))] = given
		}
	}
	return b
}

// one returns the block if there is one value of each setting.
func (f *cellFlags) one() (sweep.Block, error) {
	b := f.block()
	for name, given := range b {
		if len(given) > 1 {
			return nil, bench.Usagef("--%s: %d values are given, and run measures one cell; kvbench sweep measures "+
				"many",
				name, len(given))
		}
	}
	return b, nil
}
