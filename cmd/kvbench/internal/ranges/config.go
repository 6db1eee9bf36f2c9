package ranges

import (
	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
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

// Schema names the form of a Result in JSON. It changes when a field changes its
// meaning or goes away.
const Schema = "kvbench.ranges/v1"

// A Result is everything a run found out.
type Result struct {
	Schema      string              `json:"schema"`
	Environment environ.Environment `json:"environment"`
	Settings
	Tables      []Table `json:"tables"`
	WallSeconds float64 `json:"wall_seconds"`
}

// A Table is all filters of one set of keys.
type Table struct {
	Set      string  `json:"set"`
	Keys     int     `json:"keys"`
	KeyBytes float64 `json:"key_bytes"` // mean
	Rows     []Row   `json:"rows"`
}

// A Row is one filter. Times are medians of the repetitions.
type Row struct {
	Name       string  `json:"name"`
	BitsPerKey float64 `json:"bits_per_key"`
	TheoryBits float64 `json:"theory_bits_per_key"` // of random keys
	TheoryRate float64 `json:"theory_rate"`         // of narrow ranges among random keys
	BuildNs    float64 `json:"build_ns_per_key"`
	PointNs    float64 `json:"point_build_ns_per_key"` // of blocked:10 for the same keys, their hashes included
	Rates      []Rate  `json:"rates"`
}

// A Rate is what a filter did with empty ranges of one kind.
type Rate struct {
	Ranges string  `json:"ranges"`
	Asked  int     `json:"asked"`
	Passed int     `json:"passed"`
	Rate   float64 `json:"rate"`
	Low    float64 `json:"low"` // 95 % Wilson interval
	High   float64 `json:"high"`
	Ns     float64 `json:"ns"` // a query
}
