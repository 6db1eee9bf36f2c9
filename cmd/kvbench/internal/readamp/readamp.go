// Package readamp measures read amplification: what a lookup of an existing key and of an absent key costs, in files,
// filter checks, blocks, bytes and time, on several engines with several filters.
//
// It is cells that are measured in turns: a row for each engine with a filter, and two trees of several levels whose
// filters take the same memory, one with uniform bits and one with a filter budget.
package readamp

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/filterpolicy"
)

// Names of what can be measured, as given to --engine.
const (
	SiftKV         = "siftkv"          // one row per filter
	PebblePlain    = "pebble"          // Get, no filter
	PebbleBloom    = "pebble-bloom"    // Get, Pebble's own Bloom filter
	PebbleSiftKV   = "pebble-siftkv"   // Get, a filter of this project in Pebble
	PebbleIterator = "pebble-iterator" // as PebbleBloom, looked up by an iterator that uses last-level filters
	RocksDBPlain   = "rocksdb"         // Get, no filter
	RocksDBBloom   = "rocksdb-bloom"   // Get, RocksDB's Bloom filter
	RocksDBRibbon  = "rocksdb-ribbon"  // Get, RocksDB's Ribbon filter that is as good
)

// Null is the name of the row that says what the harness itself costs.
const Null = "null"

// presets are the rows of the names in Config.Engines, except SiftKV's, in the order of the report. Rows that differ in
// access only share a store, so that they read the same files.
var presets = []struct{ name, row, engine, filter string }{
	{PebblePlain, "pebble none", "pebble", "none"},
	{PebbleBloom, "pebble bloom(10)", "pebble", "own:10"},
	{PebbleIterator, "pebble iterator bloom(10)", engine.PebbleIteratorName, "own:10"},
	{PebbleSiftKV, "pebble siftkv blocked:10", "pebble", "blocked:10"},
	{RocksDBPlain, "rocksdb none", engine.RocksDBName, "none"},
	{RocksDBBloom, "rocksdb bloom:10", engine.RocksDBName, "bloom:10"},
	{RocksDBRibbon, "rocksdb ribbon:10", engine.RocksDBName, "ribbon:10"},
}

// Engines lists the names in the order of the report: RocksDB's only if it is built in.
func Engines() []string {
	names := []string{SiftKV, PebblePlain, PebbleBloom, PebbleSiftKV, PebbleIterator}
	if engine.HasRocksDB() {
		names = append(names, RocksDBPlain, RocksDBBloom, RocksDBRibbon)
	}
	return names
}

// Word returns what a name of Engines is in the words of cells: an engine and its filter.
func Word(name string) string {
	for _, p := range presets {
		if p.name == name {
			return p.engine + "/" + p.filter
		}
	}
	return name
}

// A Config says what to measure.
type Config struct {
	Engines []string // of Engines
	Filters []string // specs of filterpolicy.Parse, one SiftKV row each
	Budget  string   // filter whose bits are spread over levels; empty or "none": no trees

	Cell  cell.Settings   // of all cells, which have engines, filters and indexes of their own
	Store engine.Settings // what else there is to say of stores
}

// cells returns the rows, null first, then those of SiftKV, one per filter, then the presets; and the trees.
func (c *Config) cells() (rows, trees []cell.Row, err error) {
	if err := bench.CheckNames("--engine", c.Engines, Engines()); err != nil {
		return nil, nil, err
	}
	if err := cmp.Or(c.Store.Check("--"), c.Cell.CheckBounds("--")); err != nil {
		return nil, nil, err
	}
	if err := c.Cell.NameKeys(keys.Name); err != nil { // once, as it reads the file
		return nil, nil, err
	}
	rows = []cell.Row{c.row(Null, Null, "none")}
	if slices.Contains(c.Engines, SiftKV) {
		if rows, err = c.filtered(rows); err != nil {
			return nil, nil, err
		}
		if trees, err = c.trees(); err != nil {
			return nil, nil, err
		}
	}
	for _, p := range presets {
		if slices.Contains(c.Engines, p.name) {
			rows = append(rows, c.row(p.row, p.engine, p.filter))
		}
	}
	for _, list := range [][]cell.Row{rows, trees} {
		for i := range list {
			if err := list[i].Settings.Check(); err != nil {
				return nil, nil, err
			}
		}
	}
	return rows, trees, nil
}

// filtered adds a row for each filter of SiftKV.
func (c *Config) filtered(rows []cell.Row) ([]cell.Row, error) {
	if len(c.Filters) == 0 {
		return nil, bench.Usagef("--filter: SiftKV needs at least one, such as none or blocked:10")
	}
	for _, spec := range c.Filters {
		policy, err := engine.ParseFilter(spec)
		if err != nil {
			return nil, bench.Usagef("--filter: %w", err)
		}
		r := c.row(SiftKV+" "+policy.String(), SiftKV, policy.String())
		if slices.Contains(rows, r) {
			return nil, bench.Usagef("--filter: %s is given twice", policy)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// trees returns the rows of equal bits and of the same memory spread over the levels, none if there is to be no such
// comparison.
func (c *Config) trees() ([]cell.Row, error) {
	if c.Budget == "" {
		return nil, nil
	}
	policy, err := filterpolicy.Parse(c.Budget)
	if err != nil {
		return nil, bench.Usagef("--budget: %w", err)
	}
	if policy.Name() == "none" {
		return nil, nil
	}
	if !engine.CanSpread(policy) {
		return nil, bench.Usagef("--budget %s: the bits of this filter cannot be chosen; "+
			"take another, such as bloom:10 or blocked:10", policy)
	}
	uniform := c.row(SiftKV+" uniform "+policy.String(), SiftKV, policy.String())
	spread := c.row(SiftKV+" budget "+policy.String(), SiftKV, policy.String())
	uniform.Settings.Shape, spread.Settings.Shape, spread.Settings.Budget = cell.Grown, cell.Grown, cell.Spread
	return []cell.Row{uniform, spread}, nil
}

// row returns a row of an engine with a filter.
func (c *Config) row(name, engineName, filter string) cell.Row {
	s := c.Cell
	s.Engine, s.Filter, s.Index = engineName, filter, int64(c.Store.PebbleIndexBytes)
	switch engineName {
	case SiftKV:
		s.Index = int64(c.Store.SiftKVIndexBytes)
	case "pebble", engine.PebbleIteratorName:
		s.Compaction = cell.Default().Compaction
	default:
		s.Compaction, s.Index = cell.Default().Compaction, 0
	}
	return cell.Row{Name: name, Settings: s}
}

// Run measures what the config says: the rows in turns, and then the two trees. Of the results, those of trees have
// the shape cell.Grown. A wrong answer ends the run with an error that matches bench.ErrWrongAnswer.
func Run(ctx context.Context, lab *cell.Lab, c *Config) ([]*cell.Result, error) {
	rows, trees, err := c.cells()
	if err != nil {
		return nil, err
	}
	lab.Loading = cell.Loading{Compactions: c.Store.Compactions, BatchKeys: c.Store.BatchKeys,
		SpacePercent: c.Store.SpacePercent}
	phase := lab.Progress.Start("read keys", 0, "")
	source, err := rows[0].Settings.Open()
	if err != nil {
		return nil, err
	}
	phase.Done()
	set, err := lab.Interleave(ctx, source, rows)
	if err != nil || len(trees) == 0 {
		return set, err
	}
	few, err := treeKeys(source, trees, maxTreeKeys)
	if err != nil {
		return set, err
	}
	for i := range trees { // each absent key once
		s := &trees[i].Settings
		s.Lookups = int64(max(1, min(few.Absent(), maxTreeLookups)/int(s.Reps)))
	}
	more, err := lab.Interleave(ctx, few, trees)
	return append(set, more...), err
}

// Bounds of the two trees: one of several levels needs little data if its files and levels are small, and lookups are
// held in memory.
const (
	maxTreeKeys    = 300_000
	maxTreeLookups = 1_000_000 // in each
)

// treeKeys returns the keys of the trees, of which there are at most limit, and puts their number into the settings. A
// file has a name there, and its first keys are taken.
func treeKeys(source keys.Source, trees []cell.Row, limit int) (keys.Source, error) {
	if source.Present() <= limit {
		return source, nil
	}
	if !keys.IsCount(trees[0].Settings.Keys) {
		return first{source, limit}, nil
	}
	for i := range trees {
		trees[i].Settings.Keys = strconv.Itoa(limit)
	}
	return trees[0].Settings.Open()
}

// first is the first keys of a file, with all of its absent ones.
type first struct {
	keys.Source
	n int
}

// Present implements [keys.Source].
func (f first) Present() int { return f.n }

// Describe implements [keys.Source].
func (f first) Describe() keys.Description {
	d := f.Source.Describe()
	d.Present = f.n
	return d
}
