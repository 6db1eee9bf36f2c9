package kv

import (
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
)

// Tables of level 0 come and go while those below stay, so their share is not set
// aside: with many files in level 0 the filters take a little more than the budget,
// rather than a little less all the time.

// filterFor returns the policy of the filters of new tables in a level, which take
// in so many entries and replace the inputs: Options.Filter, or under a
// FilterBudget the policy of its family that the level's share of the budget pays
// for; none if that is too little.
func (d *DB) filterFor(v *version, level int, entries uint64, inputs []*table) filterpolicy.Policy {
	if d.opts.FilterBudget == 0 {
		return d.opts.Filter
	}
	runs := []uint64{0} // runs[0]: the new tables, with the level that they join
	for n := range v.levels {
		sum := uint64(0)
		for _, t := range v.levels[n].tables {
			switch {
			case slices.Contains(inputs, t):
			case n > 0:
				sum += t.Entries
			case level == 0:
				runs = append(runs, t.Entries)
			}
		}
		if n == level {
			runs[0] += sum // of level 0: nothing, each of its tables is a run
		} else if n > 0 {
			runs = append(runs, sum)
		}
	}
	runs[0] += entries
	bits := filterpolicy.Spread(d.opts.Filter, d.opts.FilterBudget, runs)[0]
	if p, ok := filterpolicy.WithBits(d.opts.Filter, bits); ok {
		return p
	}
	return noFilter
}

// noFilter is the policy "none".
var noFilter = func() filterpolicy.Policy {
	p, err := filterpolicy.Parse("none")
	if err != nil {
		panic(err) // the family is built in
	}
	return p
}()

// entriesOf returns the number of point entries of tables.
func entriesOf(tables []*table) (n uint64) {
	for _, t := range tables {
		n += t.Entries
	}
	return n
}
