package report

import (
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/objects"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// storing is a store in an object store.
var storing = experiment{
	grids: func(r *tidy.Result) (grids []*Grid) {
		kib := func(bytes float64) string { return threeDigits(bytes / 1024) }
		columns := []column{{"bits\n/key", in(bits, "filters")}}
		for _, kind := range objects.LookupKinds {
			columns = append(columns, column{kind + "\nGET", in(threeDigits, kind+" gets")},
				column{kind + "\nKiB", in(kib, kind+" received")},
				column{kind + "\n$/M", in(threeDigits, kind+" dollars")})
		}
		for _, shape := range []string{objects.Settled, objects.Young} {
			cells := slices.DeleteFunc(r.Cells("filter", "shape", "cache"),
				func(c tidy.Cell) bool { return c["shape"] != shape })
			if len(cells) == 0 {
				continue
			}
			files, _ := numbers{r, cells[0]}.median("files")
			title := map[string]string{objects.Settled: "Lookups, settled",
				objects.Young: "Lookups, young files in level 0"}[shape]
			grids = append(grids, cellsTable(r, title+" ("+times(int(files), "file")+" in all)", 2,
				[]string{"filter", "cache"}, cells, columns...))
		}
		operations := r.Cells("operation", "shape", "filter")
		if len(operations) == 0 {
			return grids
		}
		return append(grids, cellsTable(r, "Operations, "+operations[0]["filter"]+", no cache", 2,
			[]string{"operation", "shape"}, operations, column{"files", in(whole, "files")},
			column{"times", in(whole, "times")}, column{"GET\n/op", in(threeDigits, "gets")},
			column{"PUT\n/op", in(threeDigits, "puts")}, column{"LIST\n/op", in(threeDigits, "lists")},
			column{"KiB\nin /op", in(kib, "received")}, column{"KiB\nout /op", in(kib, "sent")},
			column{"$/M", in(threeDigits, "dollars")}, column{"trips", in(figure, "trips")},
			column{"most\ntrips", in(whole, "most-trips")},
			column{"ms", in(func(s float64) string { return figure(1e3 * s) }, "time")}))
	},
	notes: []string{
		"GET: requests per lookup; every answer was checked. $/M: of requests, per million lookups.",
		"cache: of blocks, filled by lookups before. Filters and indexes are in memory too, outside of it.",
	},
}
