package filters

import (
	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Config says what to measure.
type Config struct {
	bench.Probing
	Filters   []string // specs of filterpolicy.Parse
	Libraries bool     // other projects' filters too
	Argv      []string
	Progress  *progress.Reporter
}

// SmallKeys is the number of keys of the filters that fit the CPU's cache.
const SmallKeys = 10_000

// ManyFilters is how many files a store with much in its young levels may ask.
const ManyFilters = 30

// candidates returns what is to be measured.
func (c *Config) candidates() (all []candidate, err error) {
	if err := c.Check(1, 1<<30); err != nil {
		return nil, err
	}
	var names []string
	for _, spec := range c.Filters {
		cand, err := policyCandidate(spec)
		if err != nil {
			return nil, err
		}
		all, names = append(all, cand), append(names, cand.name)
	}
	if c.Libraries {
		all = append(all, libraries...)
	}
	if len(all) == 0 {
		return nil, bench.Usagef("--filter: nothing to measure")
	}
	return all, bench.CheckTwice("--filter", names)
}
