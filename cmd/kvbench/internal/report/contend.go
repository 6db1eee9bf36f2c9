package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
)

// Contend writes a result as text.
func Contend(w io.Writer, r *compare.ContendResult) error {
	return write(w, func(out *page.Page) {
		s := r.Settings
		out.Printf("Processors and goroutines: %s keys of %d bytes, values of %d bytes, everything cached, medians of "+
			"%s of %g s, seed %d\n\nmachine   %s\n", count(s.Keys), s.KeySize, s.ValueSize,
			times(s.Repetitions, "repetition"), s.Seconds, s.Seed, r.Environment.String())
		for _, work := range compare.ContendWorks {
			for _, what := range contendFigures {
				out.Grid(contendGrid(r, work, what.title, what.value))
			}
		}
		if g := contendHeld(r); len(g.Rows) > 0 {
			out.Grid(g)
		}
		out.List("Notes",
			"absent, existing: lookups; set: single writes that are with the operating system when they return.",
			"waits for locks: /sync/mutex/wait/total of the Go runtime, of all goroutines together; what they wait "+
				"for channels and condition variables is not in it.")
		out.End(r.Environment.Warnings, r.WallSeconds)
	})
}

// contendFigures are shown of every kind of work.
var contendFigures = []struct {
	title string
	value func(compare.ContendRow) string
}{
	{"thousands per second", func(r compare.ContendRow) string { return figure(r.PerSecond / 1e3) }},
	{"nanoseconds of processor time per operation", func(r compare.ContendRow) string { return nanos(r.CPU) }},
	{"nanoseconds of waits for locks per operation", func(r compare.ContendRow) string { return nanos(r.MutexWait) }},
}

// contendGrid has a row for each engine and number of processors, and a column for each
// number of goroutines.
func contendGrid(r *compare.ContendResult, work, what string, value func(compare.ContendRow) string) *Grid {
	names := []string{"engine", "GOMAXPROCS"}
	for _, n := range r.Settings.Goroutines {
		names = append(names, count(n)+" gor.")
	}
	g := newLines(work+": "+what, 1, names...)
	for _, name := range r.Settings.Engines {
		for _, procs := range r.Settings.Procs {
			row := []any{name, procs}
			for _, n := range r.Settings.Goroutines {
				row = append(row, value(contendRow(r, work, name, procs, n)))
			}
			g.Add(row...)
		}
	}
	return g
}

func contendRow(r *compare.ContendResult, work, engine string, procs, goroutines int) compare.ContendRow {
	for _, row := range r.Rows {
		if row.Work == work && row.Engine == engine && row.Procs == procs && row.Goroutines == goroutines {
			return row
		}
	}
	return compare.ContendRow{}
}

// contendHeld says what is left of the throughput with as many processors as the machine has
// when the program is told that there are most.
func contendHeld(r *compare.ContendResult) *Grid {
	most, cores := slices.Max(r.Settings.Procs), 0
	for _, n := range r.Settings.Procs {
		if n <= r.Environment.Cores {
			cores = max(cores, n)
		}
	}
	names := []string{"work", "engine"}
	for _, n := range r.Settings.Goroutines {
		names = append(names, count(n)+" gor.")
	}
	g := newLines(fmt.Sprintf("Throughput with GOMAXPROCS %d, in parts of that with %d", most, cores), 2, names...)
	if cores == 0 || cores == most {
		return g
	}
	for _, work := range compare.ContendWorks {
		for _, name := range r.Settings.Engines {
			row := []any{work, name}
			for _, n := range r.Settings.Goroutines {
				few := contendRow(r, work, name, cores, n).PerSecond
				row = append(row, ratio(contendRow(r, work, name, most, n).PerSecond/few))
			}
			g.Add(row...)
		}
	}
	return g
}
