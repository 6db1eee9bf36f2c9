package report

import (
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// ranging is range filters by themselves.
var ranging = experiment{
	grids: func(r *tidy.Result) (grids []*Grid) {
		for _, set := range r.Cells("set", "keys") {
			of := slices.DeleteFunc(r.Cells("set", "keys", "filter"), func(c tidy.Cell) bool {
				return c["set"] != set["set"] || c["keys"] != set["keys"]
			})
			kinds := slices.DeleteFunc(r.Cells("set", "keys", "filter", "ranges"), func(c tidy.Cell) bool {
				return c["set"] != set["set"] || c["keys"] != set["keys"] || c["filter"] != of[0]["filter"]
			})
			size, _ := numbers{r, set}.median("key-size")
			title := fmt.Sprintf("%s: %s keys of %s bytes", set["set"], setting(set["keys"]), fixed(size, 1))
			grids = append(grids, cellsTable(r, title, 1, []string{"filter"}, of,
				column{"bits/key", in(two, "size")}, column{"theory", in(two, "theory-size")},
				column{"theory %", in(percent, "theory-rate")}, column{"build ns", in(nanos, "build")},
				column{"x blocked", slowerThanPoints}, column{"query ns", func(n numbers) string {
					return in(nanos, "query")(numbers{r, n.cell.With("ranges", kinds[0]["ranges"])})
				}}))
			columns := []column{{"asked", in(whole, "asked")}}
			for _, f := range of {
				columns = append(columns, column{f["filter"] + " %", func(n numbers) string {
					return interval(percent, "rate")(numbers{r, n.cell.With("filter", f["filter"])})
				}})
			}
			grids = append(grids, cellsTable(r, "", 1, []string{"ranges"}, kinds, columns...))
		}
		return grids
	},
	notes: []string{
		"% of ranges without a key that the filter lets pass, with their 95 % Wilson interval. All keys were " +
			"asked for by the narrowest range, and none was denied.",
		"theory: of random keys, and of narrow ranges anywhere among them.",
		"gap: mean distance of two keys; unit: 1 in the first eight bytes, taken as a number.",
		"x blocked: time to build over that of blocked:10 for the same keys, their hashes included. query ns: of " +
			"the first kind of ranges.",
	},
}

// slowerThanPoints shows how many times as long as the filter for lookups this one takes to build.
func slowerThanPoints(n numbers) string {
	points, _ := n.median("point-build")
	return in(func(x float64) string { return ratio(x / points) }, "build")(n)
}
