package report

import (
	"fmt"
	"io"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/filters"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
)

// Filters writes a result as text for a terminal of 160 columns.
func Filters(w io.Writer, r *filters.Result) error {
	return write(w, func(out *page.Page) {
		out.Printf("Filters on their own: space, errors, time; %s absent probes, medians of %s, seed %d\n\nmachine   "+
			"%s\n",
			count(r.Probes), times(r.Repetitions, "repetition"), r.Seed, r.Environment.String())
		for _, t := range r.Tables {
			out.Grid(filterTable(t))
		}
		out.List("Notes",
			"FPR: share of absent keys that the filter lets pass, with its 95 % Wilson interval. All keys were asked "+
				"for, and none was denied.",
			fmt.Sprintf("ns: per probe, a function call through a pointer included. small: a filter of %s keys, "+
				"which the CPU caches. %d files: one absent key asked of %d filters that share the keys.",
				count(filters.SmallKeys), filters.ManyFilters, filters.ManyFilters),
			"Pebble, bits-and-blooms and seiflotfy take bytes: they get the eight bytes of the hash and hash them "+
				"again, which is in their times.",
			"x pebble: time of Pebble's bloom(10) for an absent key over this filter's.")
		out.End(r.Environment.Warnings, r.WallSeconds)
	})
}

func filterTable(t filters.Table) *Grid {
	g := newLines(count(t.Keys)+" keys", 1, "filter", "bits/key", "theory", "FPR % [95 %]", "theory", "build ns",
		"build B", "present ns", "absent ns", "small", "small absent", fmt.Sprintf("%d files", filters.ManyFilters),
		"x pebble")
	for _, r := range t.Rows {
		theoryBits, theory, faster := absentCell, absentCell, absentCell
		if r.TheoryBits > 0 {
			theoryBits, theory = fixed(r.TheoryBits, 2), percent(r.TheoryFPR)
		}
		if r.FasterThanPebble > 0 {
			faster = ratio(r.FasterThanPebble)
		}
		g.Add(r.Name, fixed(r.BitsPerKey, 2), theoryBits, between(percent, r.FPR, r.FPRLow, r.FPRHigh), theory,
			nanos(r.BuildNs), fixed(r.BuildBytes, 1), nanos(r.PresentNs), nanos(r.AbsentNs), nanos(r.SmallPresentNs),
			nanos(r.SmallAbsentNs), nanos(r.ManyAbsentNs), faster)
	}
	return g
}
