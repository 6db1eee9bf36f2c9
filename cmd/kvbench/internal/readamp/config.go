package readamp

import (
	"cmp"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
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

// Settings are the exact settings of a run.
type Settings struct {
	Engines    []string `json:"engines"`              // of Engines
	Filters    []string `json:"filters"`              // specs of filterpolicy.Parse, one SiftKV row each
	Compaction string   `json:"compaction,omitempty"` // of engine.CompactionStyles, for SiftKV; empty: the first
	// filter whose bits are spread over levels; empty or "none": left out
	Budget         string          `json:"budget"`
	ValueBytes     int             `json:"value_bytes"`
	Lookups        int             `json:"lookups"`         // timed, of each kind, per row and repetition
	LatencyLookups int             `json:"latency_lookups"` // timed one by one, likewise; Run says how many
	WarmupLookups  int             `json:"warmup_lookups"`  // not timed, of each kind, per row; likewise
	Repetitions    int             `json:"repetitions"`
	Seed           uint64          `json:"seed"`
	Store          engine.Settings `json:"store"`
}

// A Config says what to measure, and where.
type Config struct {
	Settings
	Keys     keys.Request
	Dir      string // where a temporary directory is made; empty: the system's
	Argv     []string
	Progress *progress.Reporter

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
