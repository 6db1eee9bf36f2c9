package readamp

import (
	"cmp"
	"slices"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/cell"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/cli/progress"
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

// Engines lists the names in the order of the report: RocksDB's only if it is built in.
func Engines() []string {
	names := []string{SiftKV, PebblePlain, PebbleBloom, PebbleSiftKV, PebbleIterator}
	if engine.HasRocksDB() {
		names = append(names, RocksDBPlain, RocksDBBloom, RocksDBRibbon)
	}
	return names
}

// A Config says what to measure. Every field is needed but Budget, Compaction, Dir, Argv and
// Wrap.
type Config struct {
	Keys        keys.Request
	ValueSize   int      // bytes
	Filters     []string // specs of filterpolicy.Parse, one SiftKV row each
	Engines     []string // of Engines
	Budget      string   // spec of the filter whose bits are spread over levels; empty or "none": left out
	Compaction  string   // of engine.CompactionStyles, for SiftKV; empty: the first
	Lookups     int      // of each kind, per row and repetition
	Repetitions int
	Seed        uint64
	Store       engine.Settings
	Dir         string // where a temporary directory is made; empty: the system's
	Argv        []string
	Progress    *progress.Reporter

	// Wrap, if set, stands between the experiment and each store it opens.
	Wrap func(store string, s engine.Store) engine.Store
}

// validate reports the first field that makes no sense.
func (c *Config) validate() error {
	for _, name := range c.Engines {
		if err := engine.CheckName("--engine", name, Engines()); err != nil {
			return err
		}
	}
	compaction := cmp.Or(c.Compaction, engine.CompactionStyles[0])
	if err := cmp.Or(bench.CheckNames("--engine", c.Engines, Engines()),
		bench.CheckBounds(bench.Bound{Flag: "--lookups", Value: int64(c.Lookups), Low: 1, High: cell.MaxLookups},
			bench.Bound{Flag: "--reps", Value: int64(c.Repetitions), Low: 1, High: 1000}),
		c.Store.Check("--"), bench.CheckNames("--compaction", []string{compaction}, engine.CompactionStyles),
	); err != nil {
		return err
	}
	if len(c.Filters) == 0 && slices.Contains(c.Engines, SiftKV) {
		return bench.Usagef("--filter: SiftKV needs at least one, such as none or blocked:10")
	}
	return nil
}
