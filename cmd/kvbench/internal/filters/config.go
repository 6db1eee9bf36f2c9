package filters

import (
	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Config says what to measure.
type Config struct {
	Keys      []int    // numbers of keys, a table each
	Filters   []string // specs of filterpolicy.Parse
	Libraries bool     // other projects' filters too
	Settings
	Argv     []string
	Progress *progress.Reporter
}

// Settings are those of a run.
type Settings struct {
	Probes      int    `json:"probes"` // absent keys for the false-positive rate, and timed lookups
	Repetitions int    `json:"repetitions"`
	Seed        uint64 `json:"seed"`
}

func (c *Config) validate() error {
	bounds := []bench.Bound{
		{Flag: "--probes", Value: int64(c.Probes), Low: 1000, High: 1 << 30},
		{Flag: "--reps", Value: int64(c.Repetitions), Low: 1, High: 1000},
	}
	for _, n := range c.Keys {
		bounds = append(bounds, bench.Bound{Flag: "--keys", Value: int64(n), Low: 1, High: 1 << 30})
	}
	switch {
	case len(c.Keys) == 0:
		return bench.Usagef("--keys: want at least one number, such as 1000000")
	case len(c.Filters) == 0 && !c.Libraries:
		return bench.Usagef("--filter: nothing to measure")
	}
	return bench.CheckBounds(bounds...)
}

// Schema names the form of a Result in JSON. It changes when a field changes its
// meaning or goes away.
const Schema = "kvbench.filters/v1"

// A Result is everything a run found out.
type Result struct {
	Schema      string              `json:"schema"`
	Environment environ.Environment `json:"environment"`
	Settings
	Tables      []Table `json:"tables"`
	WallSeconds float64 `json:"wall_seconds"`
}

// A Table is all filters at one number of keys.
type Table struct {
	Keys int   `json:"keys"`
	Rows []Row `json:"rows"`
}

// A Row is one filter. Times are medians of the repetitions.
type Row struct {
	Name           string  `json:"name"`
	Library        bool    `json:"library"` // not of this project
	BitsPerKey     float64 `json:"bits_per_key"`
	TheoryBits     float64 `json:"theory_bits_per_key"` // 0: not known
	FPR            float64 `json:"fpr"`
	FPRLow         float64 `json:"fpr_low"` // 95 % Wilson interval
	FPRHigh        float64 `json:"fpr_high"`
	TheoryFPR      float64 `json:"theory_fpr"`          // 0: not known
	BuildNs        float64 `json:"build_ns_per_key"`    // hashes in, filter out
	BuildBytes     float64 `json:"build_bytes_per_key"` // allocated while building, the filter included
	PresentNs      float64 `json:"present_ns"`
	AbsentNs       float64 `json:"absent_ns"`
	SmallPresentNs float64 `json:"small_present_ns"` // of a filter of SmallKeys keys, which the CPU caches
	SmallAbsentNs  float64 `json:"small_absent_ns"`
	// one lookup in ManyFilters filters in turn, the keys shared among them
	ManyAbsentNs     float64 `json:"many_absent_ns"`
	FasterThanPebble float64 `json:"faster_than_pebble"` // AbsentNs of pebble bloom(10) over this; 0: not in the run
}

// SmallKeys is the number of keys of the filters that fit the CPU's cache.
const SmallKeys = 10_000

// ManyFilters is how many files a store with much in its young levels may ask.
const ManyFilters = 30
