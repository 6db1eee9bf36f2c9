package chart

import (
	"fmt"
	"math"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// perLookup divides a count; 0 if it is not known.
func perLookup(c engine.Count, p *cell.Phase) float64 {
	if !c.Known() || p.Lookups == 0 {
		return 0
	}
	return float64(c) / float64(p.Lookups)
}

// blocks stacks the blocks that a lookup reads, by level; or shows their sums on a logarithmic axis where bars of most
// cells would be too short to be seen.
func blocks(set []*cell.Result, labels []string, kind engine.Kind) Chart {
	c := Chart{
		ID: "blocks-" + string(kind), Title: "Blocks per lookup of an " + string(kind) + " key, by level", Form: Bars,
		Stacked: true,
		Y:       Axis{Name: "blocks per lookup"},
		Note: "Blocks from cache and from files. An engine that does not count by level has one part, all " +
			"levels; Pebble's blocks include index and filter blocks.",
		Categories: labels,
	}
	levels := 0
	for _, r := range set {
		levels = max(levels, len(r.Phase(kind).Counters.Levels))
	}
	whole := Series{Name: "all levels", Values: make([]float64, len(set))}
	parts := make([]Series, levels)
	for i := range parts {
		parts[i] = Series{Name: fmt.Sprintf("L%d", i), Values: make([]float64, len(set))}
	}
	any := false
	for i, r := range set {
		p := r.Phase(kind)
		for n := range p.Counters.Levels {
			parts[n].Values[i] = perLookup(p.Counters.Levels[n].Blocks(), p)
		}
		if len(p.Counters.Levels) == 0 {
			whole.Values[i] = perLookup(p.Counters.Total.Blocks(), p)
		}
		any = any || p.Counters.Total.Blocks().Known()
	}
	if !any {
		return Chart{}
	}
	for _, s := range append(parts, whole) {
		if !allZero(s.Values) {
			c.Series = append(c.Series, s)
		}
	}
	if sums := c.sums(); spread(sums) > visible {
		c.Title, c.Stacked, c.Y.Log = "Blocks per lookup of an "+string(kind)+" key", false, true
		c.Series = []Series{{Name: "all levels", Values: sums}}
	}
	return c
}

// visible is how many times as long as the shortest bar the longest may be: beside it, the shortest has some pixels.
const visible = 20

// sums returns the sum of the series for each category.
func (c *Chart) sums() []float64 {
	sums := make([]float64, len(c.Categories))
	for _, s := range c.Series {
		for i, x := range s.Values {
			sums[i] += max(x, 0)
		}
	}
	return sums
}

// spread returns how many times as large as the smallest positive value the largest is.
func spread(values []float64) float64 {
	low, high := math.Inf(1), 0.0
	for _, x := range values {
		if x > 0 {
			low, high = min(low, x), max(high, x)
		}
	}
	return high / low
}

func allZero(values []float64) bool {
	for _, x := range values {
		if x != 0 {
			return false
		}
	}
	return true
}

// funnelSteps are what is left of a lookup after each thing that can rule a file out.
var funnelSteps = []struct {
	name string
	of   func(t *engine.Tally) engine.Count
}{
	{"files considered", func(t *engine.Tally) engine.Count { return t.FilesConsidered }},
	{"within bounds", func(t *engine.Tally) engine.Count { return t.FilterChecks.Plus(t.Unfiltered) }},
	{"let pass by filters", func(t *engine.Tally) engine.Count { return t.IndexLookups }},
	{"blocks", (*engine.Tally).Blocks},
	{"blocks from files", func(t *engine.Tally) engine.Count { return t.BlocksFromDisk }},
}

// funnel shows how few of the files that a lookup considers it reads.
func funnel(set []*cell.Result, labels []string, kind engine.Kind) Chart {
	c := Chart{
		ID: "funnel-" + string(kind), Title: "Funnel of one lookup of an " + string(kind) + " key", Form: Bars,
		Y: Axis{Name: "per lookup"},
		Note: "What is left after bounds, filters, index and cache. Engines that do not count these steps are left " +
			"out.",
	}
	for _, s := range funnelSteps {
		c.Categories = append(c.Categories, s.name)
	}
	var all []float64
	for i, r := range set {
		p := r.Phase(kind)
		if !p.Counters.Total.FilesConsidered.Known() {
			continue
		}
		s := Series{Name: labels[i]}
		for _, step := range funnelSteps {
			s.Values = append(s.Values, perLookup(step.of(&p.Counters.Total), p))
		}
		c.Series = append(c.Series, s)
		all = append(all, s.Values...)
	}
	c.Y.Log = spread(all) > visible
	return c
}

// times shows the median time of a lookup, of both kinds side by side.
func times(set []*cell.Result, labels []string) Chart {
	c := Chart{
		ID: "times", Title: "Time of a lookup", Form: Bars, Y: Axis{Name: "time of a lookup", Unit: Nanoseconds},
		Categories: labels,
		Note:       "Median of the repetitions.",
	}
	for _, kind := range []engine.Kind{engine.Absent, engine.Existing} {
		s := Series{Name: string(kind)}
		for _, r := range set {
			s.Values = append(s.Values, r.Phase(kind).NsPerLookup)
		}
		c.Series = append(c.Series, s)
	}
	return c
}
