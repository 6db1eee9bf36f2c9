package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/readamp"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
)

// readampFilters are the filters of SiftKV that readamp measures by default.
const readampFilters = "none;bloom:10;blocked:10;cuckoo:12;oracle"

// readampCommand is the command line of kvbench readamp.
type readampCommand struct {
	Engine     []string `default:"all" placeholder:"NAMES" help:"${readamp_engine}"`
	Filter     []string `default:"${five}" sep:"none" placeholder:"SPECS" help:"${readamp_filter}"`
	Budget     string   `default:"bloom:10" placeholder:"SPEC" help:"${readamp_budget}"`
	Compaction string   `default:"${style}" placeholder:"NAME" help:"${readamp_compaction}"`
	Keys       string   `default:"1000000" placeholder:"N|FILE" help:"${readamp_keys}"`
	Lookups    int      `default:"40000" placeholder:"N" help:"${readamp_lookups}"`
	repsFlag
	dataFlags
	cacheFlag
	storeFlags
	compressionFlag
	SiftkvIndex bench.Size `default:"0" placeholder:"SIZE" help:"${siftkvindex}"`
	PebbleIndex bench.Size `default:"0" placeholder:"SIZE" help:"${pebbleindex}"`
	dirFlag     `set:"room=, about 700 MB for the defaults"`
	jsonFlag
}

// engineWords lists what --engine takes in this build; the names of package readamp are
// taken, too.
func engineWords() []string {
	words := slices.Clone(readamp.Engines())
	for i, name := range words {
		words[i] = readamp.Word(name)
	}
	return words
}

// engines returns the rows that were asked for.
func (c *readampCommand) engines() ([]string, error) {
	all, words := readamp.Engines(), engineWords()
	if slices.Equal(c.Engine, []string{"all"}) {
		return all, nil
	}
	var rows []string
	for _, given := range c.Engine {
		at := max(slices.Index(all, given), slices.Index(words, given))
		if at < 0 {
			return nil, bench.Usagef("--engine %s: choose from %s", given, strings.Join(words, ", "))
		}
		rows = append(rows, all[at])
	}
	return rows, nil
}

// batchKeys is the number of keys per write batch while loading.
const batchKeys = 1000

// Run measures, prints the tables, and writes the JSON file if asked to. Broken
// identities are an error, but only after the result is out.
func (c *readampCommand) Run(ctx context.Context, p *program) (err error) {
	engines, err := c.engines()
	if err != nil {
		return err
	}
	store := c.settings(c.Cache, c.Compression)
	store.BatchKeys, store.SiftKVIndexBytes, store.PebbleIndexBytes = batchKeys, int(c.SiftkvIndex), int(c.PebbleIndex)
	of := cell.Default()
	of.Keys, of.KeySize, of.ValueSize, of.Compaction = c.Keys, int64(c.KeySize), int64(c.ValueSize), c.Compaction
	of.Cache, of.Memtable, of.Block, of.Compression = int64(c.Cache), int64(c.Memtable), int64(c.Block), c.Compression
	of.Lookups, of.Reps, of.DataSeed, of.Seed = int64(c.Lookups), int64(c.Reps), c.Seed, c.Seed
	lab, err := c.lab(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	set, err := readamp.Run(ctx, lab, &readamp.Config{Engines: engines, Filters: specs(c.Filter), Budget: c.Budget,
		Cell: of, Store: store})
	if err := show(p, report.ReadAmp, c.JSON)(set, err); err != nil {
		return err
	}
	return report.Identities(set).Err()
}
