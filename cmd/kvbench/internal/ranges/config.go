package ranges

import (
	"cmp"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Config says what to measure.
type Config struct {
	bench.Probing
	Sets     []string // names of Generated, or paths of files with a key per line, half of which are held out
	Filters  []string // specs of filterpolicy.ParseRange
	Argv     []string
	Progress *progress.Reporter
}

// policies returns what is to be measured.
func (c *Config) policies() (all []filterpolicy.RangePolicy, err error) {
	if err := cmp.Or(c.Check(2, 1<<27), bench.CheckTwice("--sets", c.Sets)); err != nil {
		return nil, err
	}
	switch {
	case len(c.Sets) == 0:
		return nil, bench.Usagef("--sets: no keys to measure with")
	case len(c.Filters) == 0:
		return nil, bench.Usagef("--filter: nothing to measure")
	}
	var names []string
	for _, spec := range c.Filters {
		p, err := filterpolicy.ParseRange(spec)
		if err != nil {
			return nil, bench.Usagef("--filter: %w", err)
		}
		all, names = append(all, p), append(names, p.String())
	}
	return all, bench.CheckTwice("--filter", names)
}
