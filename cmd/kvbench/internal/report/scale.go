package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// scaling is how cost grows with the number of keys.
var scaling = experiment{
	grids: func(r *tidy.Result) []*Grid {
		by := []string{"engine", "keys"}
		return []*Grid{
			cellTable(r, "Nanoseconds of processor time per lookup [least, most]", 1, by,
				column{"load s", in(figure, "load")}, column{"files", in(whole, "files")},
				column{"absent", spread(nanos, "absent")}, column{"existing", spread(nanos, "existing")},
				column{"zipfian", spread(nanos, "zipfian")}, column{"one load", in(nanos, "dependent-load")},
				column{"growth", growth}),
			cellTable(r, "Bytes per key", 1, by, column{"filters", perKey("filters")},
				column{"indexes", perKey("indexes")}, column{"other", perKey("other")},
				column{"pinned", perKey("pinned")}, column{"RSS", perKey("resident")},
				column{"cache", perKey("cache")}, column{"on disk", perKey("disk")}),
		}
	},
	notes: []string{
		"one load: a load from memory whose address comes from the load before, at random over as many bytes as " +
			"filters and indexes take (all resident memory if the engine does not say).",
		"growth: how much longer an absent lookup takes than with the fewest keys, in such loads of this size.",
		"filters, indexes: as the store counts them. other: live heap beside them, without cache and memtable. " +
			"pinned: anonymous memory of such a process after a garbage collection.",
		"RSS: memory of the process after the lookups, with its cache, without that of a process with no store.",
	},
}

// growth shows what an absent lookup takes more than in the first store of the engine.
func growth(n numbers) string {
	all := n.Cells("engine", "keys")
	first := all[slices.IndexFunc(all, func(c tidy.Cell) bool { return c["engine"] == n.cell["engine"] })]
	now, _ := n.median("absent")
	then, _ := numbers{n.Result, first}.median("absent")
	load, _ := n.median("dependent-load")
	if first["keys"] == n.cell["keys"] || load == 0 {
		return absentCell
	}
	return fixed((now-then)/load, 2)
}

// contending is many goroutines under several numbers of processors.
var contending = experiment{
	grids: func(r *tidy.Result) (grids []*Grid) {
		for _, work := range compare.ContendWorks {
			grids = append(grids,
				contendTable(r, work, "thousands per second",
					in(func(x float64) string { return figure(x / 1e3) }, "rate")),
				contendTable(r, work, "nanoseconds of processor time per operation", in(nanos, "processor-time")),
				contendTable(r, work, "nanoseconds of waits for locks per operation", in(nanos, "lock-wait")))
		}
		return append(grids, contendHeld(r))
	},
	notes: []string{
		"absent, existing: lookups; set: single writes that are with the operating system when they return.",
		"waits for locks: /sync/mutex/wait/total of the Go runtime, of all goroutines together; what they wait " +
			"for channels and condition variables is not in it.",
	},
}

// contendTable has a row for each engine and number of processors, and a column for each
// number of goroutines.
func contendTable(r *tidy.Result, work, what string, show figures) *Grid {
	g := newLines(work+": "+what, 1, append([]string{"engine", "GOMAXPROCS"}, goroutines(r)...)...)
	for _, name := range r.Each("engine") {
		for _, procs := range r.Each("gomaxprocs") {
			row := []any{name, setting(procs)}
			for _, n := range r.Each("goroutines") {
				row = append(row, show(numbers{r, contendCell(work, name, procs, n)}))
			}
			g.Add(row...)
		}
	}
	return g
}

func contendCell(work, engine, procs, goroutines string) tidy.Cell {
	return tidy.Of("work", work, "engine", engine, "gomaxprocs", procs, "goroutines", goroutines)
}

// goroutines returns the headings of columns.
func goroutines(r *tidy.Result) (names []string) {
	for _, n := range r.Each("goroutines") {
		names = append(names, setting(n)+" gor.")
	}
	return names
}

// contendHeld says what is left of the throughput with as many processors as the machine has
// when the program is told that there are most.
func contendHeld(r *tidy.Result) *Grid {
	most, cores := 0, 0
	for _, text := range r.Each("gomaxprocs") {
		n, _ := strconv.Atoi(text)
		if most = max(most, n); n <= r.Environment.Cores {
			cores = max(cores, n)
		}
	}
	g := newLines(fmt.Sprintf("Throughput with GOMAXPROCS %d, in parts of that with %d", most, cores), 2,
		append([]string{"work", "engine"}, goroutines(r)...)...)
	if cores == 0 || cores == most {
		return g
	}
	for _, work := range compare.ContendWorks {
		for _, name := range r.Each("engine") {
			row := []any{work, name}
			for _, n := range r.Each("goroutines") {
				few, _ := numbers{r, contendCell(work, name, strconv.Itoa(cores), n)}.median("rate")
				many, _ := numbers{r, contendCell(work, name, strconv.Itoa(most), n)}.median("rate")
				row = append(row, ratio(many/few))
			}
			g.Add(row...)
		}
	}
	return g
}
