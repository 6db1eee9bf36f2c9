package ranges

import (
	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Config says what to measure.
type Config struct {
	Keys    []int    // numbers of keys, a table for each set of keys that is generated
	Sets    []string // names of Generated, or paths of files with a key per line, half of which are held out
	Filters []string // specs of filterpolicy.ParseRange
	Settings
	Argv     []string
	Progress *progress.Reporter
}

// Settings are those of a run.
type Settings struct {
	Probes      int    `json:"probes"` // empty ranges of each kind
	Repetitions int    `json:"repetitions"`
	Seed        uint64 `json:"seed"`
}

func (c *Config) validate() error {
	bounds := []bench.Bound{
		{Flag: "--probes", Value: int64(c.Probes), Low: 1000, High: 1 << 30},
		{Flag: "--reps", Value: int64(c.Repetitions), Low: 1, High: 1000},
	}
	for _, n := range c.Keys {
		bounds = append(bounds, bench.Bound{Flag: "--keys", Value: int64(n), Low: 2, High: 1 << 27})
	}
	switch {
	case len(c.Keys) == 0:
		return bench.Usagef("--keys: want at least one number, such as 100000")
	case len(c.Sets) == 0:
		return bench.Usagef("--sets: no keys to measure with")
	case len(c.Filters) == 0:
		return bench.Usagef("--filter: nothing to measure")
	}
	return bench.CheckBounds(bounds...)
}
