package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

func comparing(r *tidy.Result) (grids []*Grid) {
	for _, compression := range r.Each("compression") {
		for _, of := range []struct{ time, ratio, rate string }{
			{"Nanoseconds", "per second", compare.PerSecond},
			{"Nanoseconds of processor time", "per second of processor time", compare.PerCPU},
		} {
			grids = append(grids, compareTimes(r, of.time, compression, of.rate))
			if len(enginesOf(r)) > 1 {
				grids = append(grids, compareRatios(r, of.ratio, compression, of.rate))
			}
		}
	}
	return append(append(grids, tablesOf(r)...), compareFigures(r))
}

// enginesOf returns the engines in the order of the settings, of which the first is the baseline, whichever has the
// first row.
func enginesOf(r *tidy.Result) []string { return settingsOf[compare.Settings](r).Engines }

// timed returns the phases of a compression that are of operations.
func timed(r *tidy.Result, compression string) []compare.Phase {
	return slices.DeleteFunc(slices.Clone(compare.Phases()), func(p compare.Phase) bool {
		return p.Unit == "" || !slices.ContainsFunc(enginesOf(r), func(engine string) bool {
			return r.Values(compare.Cell(p.Name, compression, engine), compare.PerSecond) != nil
		})
	})
}

func compareTimes(r *tidy.Result, what, compression, rate string) *Grid {
	engines := enginesOf(r)
	g := newLines(what+" per operation, compression "+compression, 2,
		slices.Concat([]string{"workload", "per"}, engines, []string{"allocs/op"})...)
	for _, p := range timed(r, compression) {
		row := []any{p.Title, p.Unit}
		var allocs []string
		known := false
		for _, engine := range engines {
			n := numbers{r, compare.Cell(p.Name, compression, engine)}
			ns := absentCell
			if perSecond, _ := n.median(rate); perSecond > 0 {
				ns = nanos(1e9 / perSecond)
			}
			row = append(row, ns)
			if all := r.Values(n.cell, compare.Allocs); len(all) > 0 {
				allocs, known = append(allocs, fixed(all[len(all)-1], 1)), true
			} else {
				allocs = append(allocs, absentCell)
			}
		}
		if !known {
			allocs = nil
		}
		g.Add(append(row, strings.Join(allocs, " "))...)
	}
	return g
}

func compareRatios(r *tidy.Result, of, compression, rate string) *Grid {
	engines := enginesOf(r)
	g := newLines("Times as many operations "+of+" as, compression "+compression, 1,
		append([]string{"workload"}, engines[1:]...)...)
	for _, p := range timed(r, compression) {
		row := []any{p.Title}
		first := r.Values(compare.Cell(p.Name, compression, engines[0]), rate)
		for _, engine := range engines[1:] {
			row = append(row, quotients(first, r.Values(compare.Cell(p.Name, compression, engine), rate)))
		}
		g.Add(row...)
	}
	return g
}

// quotients compares repetition with repetition, which were taken within seconds of each other, and shows the median
// with its interval.
func quotients(a, b []float64) string {
	var all []float64
	for i := range min(len(a), len(b)) {
		if a[i] > 0 && b[i] > 0 {
			all = append(all, a[i]/b[i])
		}
	}
	if len(all) == 0 {
		return absentCell
	}
	median, low, high := medianInterval(all)
	return between(ratio, median, low, high)
}

// medianInterval returns the median of xs and the narrowest pair of order
// statistics, at the same distance from both ends, that holds the true median with a
// probability of at least 90 %; with less than five values, their range. There is at
// least one.
func medianInterval(xs []float64) (median, low, high float64) {
	n := len(xs)
	sorted := slices.Sorted(slices.Values(xs))
	// The median lies outside of the k-th values from both ends with the probability
	// of fewer than k heads in n throws, twice.
	k, outside, term := 0, 0.0, math.Pow(0.5, float64(n))
	for j := 0; 2*j < n; j++ {
		outside += 2 * term
		if outside > 0.1 {
			break
		}
		k = j
		term *= float64(n-j) / float64(j+1)
	}
	return measure.Median(xs), sorted[k], sorted[n-1-k]
}

func compareFigures(r *tidy.Result) *Grid {
	engines := enginesOf(r)
	g := newLines("Other figures", 3, append([]string{"figure", "compression", "unit"}, engines...)...)
	for _, f := range compare.Figures {
		for _, compression := range r.Each("compression") {
			row, known := []any{f.Title, compression, f.Unit}, false
			for _, engine := range engines {
				n := numbers{r, compare.Cell(f.Phase, compression, engine)}
				known = known || r.Values(n.cell, f.Name) != nil
				row = append(row, (&columnSpec{Of: f.Name, Form: "figure"}).text(n))
			}
			if known {
				g.Add(row...)
			}
		}
	}
	return g
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

func contending(r *tidy.Result) (grids []*Grid) {
	for _, work := range compare.ContendWorks {
		for _, c := range []columnSpec{
			{Name: "thousands per second", Of: compare.PerSecond, Form: "thousands"},
			{Name: "nanoseconds of processor time per operation", Of: compare.PerCPU, Form: "rate in ns"},
			{Name: "nanoseconds of waits for locks per operation", Of: compare.LockWait, Form: "ns"},
		} {
			grids = append(grids, crossTable(r, work+": "+c.Name, 1, []string{"engine", "gomaxprocs"}, "goroutines",
				crowds(r, "workload", work), c.text))
		}
	}
	return append(grids, throughputHeld(r)...)
}

// crowds returns the cells of goroutines that have a value of a setting.
func crowds(r *tidy.Result, name, value string) []tidy.Cell {
	return slices.DeleteFunc(r.Cells("workload", "compression", "engine", "gomaxprocs", "goroutines"),
		func(c tidy.Cell) bool { return c[name] != value })
}

// throughputHeld says what is left of the throughput with as many processors as the machine has
// when the program is told that there are most.
func throughputHeld(r *tidy.Result) []*Grid {
	most, cores := 0, 0
	for _, text := range r.Each("gomaxprocs") {
		n, _ := strconv.Atoi(text)
		if most = max(most, n); n <= r.Environment.Cores {
			cores = max(cores, n)
		}
	}
	if cores == 0 || cores == most {
		return nil
	}
	title := fmt.Sprintf("Throughput with GOMAXPROCS %d, in parts of that with %d", most, cores)
	return []*Grid{crossTable(r, title, 2, []string{"workload", "engine"}, "goroutines",
		crowds(r, "gomaxprocs", strconv.Itoa(most)), func(n numbers) string {
			few, _ := numbers{r, n.cell.With("gomaxprocs", cores)}.median(compare.PerSecond)
			many, _ := n.median(compare.PerSecond)
			return ratio(many / few)
		})}
}

// loadRate shows the keys that were loaded in a second, with the compactions that this set off.
func loadRate(n numbers) string {
	load, _ := n.median("load")
	calm, _ := n.median("calm")
	return whole(n.keys() / (load + calm))
}
