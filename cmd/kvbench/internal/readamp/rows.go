package readamp

import (
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// Null is the name of the row that says what the harness itself costs.
const Null = "null"

// pebbleOwn names Pebble's own filter in reports.
const pebbleOwn = "bloom(10)"

// A row is one way to look keys up in a store, and how reports call it.
type row struct {
	name, store    string // the store's name is that of the row which builds it
	engine, filter string
	access         engine.Access
	of             [2]string // engine and filter of the cell
}

// presets are the rows of the names in Config.Engines, but for SiftKV's, in the order of the
// report. Rows that differ in access only share a store, so that they read the same files.
var presets = []struct {
	name string
	row
}{
	{PebblePlain, row{"pebble none", "pebble none", "pebble", "none", engine.Get, [2]string{"pebble", "none"}}},
	{PebbleBloom, row{"pebble " + pebbleOwn, "pebble " + pebbleOwn, "pebble", pebbleOwn, engine.Get,
		[2]string{"pebble", "own:10"}}},
	{PebbleIterator, row{"pebble iterator " + pebbleOwn, "pebble " + pebbleOwn, "pebble", pebbleOwn, engine.Iterator,
		[2]string{engine.PebbleIteratorName, "own:10"}}},
	{PebbleSiftKV, row{"pebble siftkv blocked:10", "pebble siftkv blocked:10", "pebble", "siftkv blocked:10",
		engine.Get, [2]string{"pebble", "blocked:10"}}},
	{RocksDBPlain, sameNames(engine.RocksDBName, "none")},
	{RocksDBBloom, sameNames(engine.RocksDBName, "bloom:10")},
	{RocksDBRibbon, sameNames(engine.RocksDBName, "ribbon:10")},
}

// Word returns what a name of Engines is in the words of cells: an engine and its filter.
func Word(name string) string {
	for _, p := range presets {
		if p.name == name {
			return p.of[0] + "/" + p.of[1]
		}
	}
	return name
}

// sameNames is a row that reports call what its cell is.
func sameNames(name, filter string) row {
	return row{name + " " + filter, name + " " + filter, name, filter, engine.Get, [2]string{name, filter}}
}

// rows lists the rows of a run: null first, then those of SiftKV, one per filter, then the
// presets.
func (c *Config) rows() ([]row, error) {
	rows := []row{{Null, Null, Null, "", engine.Get, [2]string{Null, "none"}}}
	if slices.Contains(c.Engines, SiftKV) {
		for _, spec := range c.Filters {
			policy, err := engine.ParseFilter(spec)
			if err != nil {
				return nil, bench.Usagef("--filter: %w", err)
			}
			r := sameNames(SiftKV, policy.String())
			if slices.Contains(rows, r) {
				return nil, bench.Usagef("--filter: %s is given twice", policy)
			}
			rows = append(rows, r)
		}
	}
	for _, p := range presets {
		if slices.Contains(c.Engines, p.name) {
			rows = append(rows, p.row)
		}
	}
	return rows, nil
}

// cell returns the cell of a row.
func (c *Config) cell(r row) cell.Settings {
	s := cell.Default()
	s.Engine, s.Filter = r.of[0], r.of[1]
	s.Cache, s.Memtable, s.Block = c.Store.CacheBytes, c.Store.MemtableBytes, int64(c.Store.BlockBytes)
	s.Compression = c.Store.Compression
	s.Keys, s.KeySize, s.ValueSize = c.Keys.Keys, int64(c.Keys.KeySize), int64(c.ValueBytes)
	s.DataSeed, s.Seed = c.Seed, c.Seed
	s.Lookups, s.Reps = int64(c.Lookups), int64(c.Repetitions)
	s.Index = int64(c.Store.PebbleIndexBytes)
	if r.engine == SiftKV {
		s.Index = int64(c.Store.SiftKVIndexBytes)
		if c.Compaction != "" {
			s.Compaction = c.Compaction
		}
	}
	return s
}
