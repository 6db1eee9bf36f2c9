package filters

import (
	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
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

// SmallKeys is the number of keys of the filters that fit the CPU's cache.
const SmallKeys = 10_000

// ManyFilters is how many files a store with much in its young levels may ask.
const ManyFilters = 30
