package report

import (
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/filters"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// filtering is filters by themselves.
var filtering = experiment{
	grids: func(r *tidy.Result) (grids []*Grid) {
		for _, keys := range r.Each("keys") {
			cells := slices.DeleteFunc(r.Cells("keys", "filter"), func(c tidy.Cell) bool { return c["keys"] != keys })
			grids = append(grids, cellsTable(r, setting(keys)+" keys", 1, []string{"filter"}, cells,
				column{"bits/key", in(two, "size")}, column{"theory", in(two, "theory-size")},
				column{"FPR % [95 %]", interval(percent, "fpr")}, column{"theory", in(percent, "theory-fpr")},
				column{"build ns", in(nanos, "build")},
				column{"build B", in(func(x float64) string { return fixed(x, 1) }, "build-bytes")},
				column{"present ns", in(nanos, "present")}, column{"absent ns", in(nanos, "absent")},
				column{"small", in(nanos, "small-present")}, column{"small absent", in(nanos, "small-absent")},
				column{fmt.Sprintf("%d files", filters.ManyFilters), in(nanos, "many-absent")},
				column{"x pebble", fasterThanPebble}))
		}
		return grids
	},
	notes: []string{
		"FPR: share of absent keys that the filter lets pass, with its 95 % Wilson interval. All keys were asked " +
			"for, and none was denied.",
		fmt.Sprintf("ns: per probe, a function call through a pointer included. small: a filter of %s keys, "+
			"which the CPU caches. %d files: one absent key asked of %d filters that share the keys.",
			count(filters.SmallKeys), filters.ManyFilters, filters.ManyFilters),
		"Pebble, bits-and-blooms and seiflotfy take bytes: they get the eight bytes of the hash and hash them " +
			"again, which is in their times.",
		"x pebble: time of Pebble's bloom(10) for an absent key over this filter's.",
	},
}

// fasterThanPebble shows how many times as long Pebble's filter takes for an absent key.
func fasterThanPebble(n numbers) string {
	base, ok := numbers{n.Result, n.cell.With("filter", filters.Pebble)}.median("absent")
	if !ok {
		return absentCell
	}
	return in(func(x float64) string { return ratio(base / x) }, "absent")(n)
}
