package report

import (
	"io"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
)

// Compare writes a result as text.
func Compare(w io.Writer, r *compare.Result) error {
	return write(w, func(out *page.Page) {
		s := r.Settings
		out.Printf("Engines compared: %s keys of %d bytes, values of %d bytes, half compressible; %s of %g s, seed "+
			"%d\n\nmachine   %s\n", count(s.Keys), s.KeySize, s.ValueSize, times(s.Repetitions, "repetition"),
			s.Seconds, s.Seed,
			r.Environment.String())
		out.Printf("settings  cache %s, memtable %s, blocks of %s, Bloom filters of 10 bits per key, batches of 100, "+
			"no sync, %d compactions at most\n", size(s.Store.CacheBytes), size(s.Store.MemtableBytes),
			size(s.Store.BlockBytes),
			s.Store.Compactions)
		if slices.ContainsFunc(s.Workloads, compare.IsLarge) {
			out.Printf("large     values of %s, %s, %s of them, apart from %s on, within %.4g of what is needed\n",
				size(s.Large.ValueSize), s.Large.Values, size(s.Large.Data), size(s.Store.SeparateFrom),
				s.Store.BlobSpace)
		}
		for i, name := range s.Engines {
			out.Printf("%-*s %s\n", max(9, longest(s.Engines)), name, s.Notes[i])
		}
		for _, compression := range s.Compressions {
			compareSpeed(out, r, compression)
		}
		for _, g := range []*Grid{compareLoads(r), compareFigures(r)} {
			if len(g.Rows) > 0 {
				out.Grid(g)
			}
		}
		out.End(r.Warnings, r.WallSeconds)
	})
}

// longest returns the length of the longest of some names.
func longest(names []string) int {
	n := 0
	for _, name := range names {
		n = max(n, len(name))
	}
	return n
}

// compareSpeed shows how fast the engines are with a compression, by both clocks.
func compareSpeed(out *page.Page, r *compare.Result, compression string) {
	type phase = compare.PhaseResult
	tables := []*Grid{
		compareTimes(r, "Nanoseconds", compression, func(s compare.Series) float64 { return s.PerSecond }),
		compareTimes(r, "Nanoseconds of processor time", compression,
			func(s compare.Series) float64 { return s.PerCPU }),
	}
	if len(r.Settings.Engines) > 1 {
		tables = slices.Insert(tables, 1,
			compareRatios(r, "per second", compression, func(p phase) []compare.Ratio { return p.Ratios }))
		tables = append(tables, compareRatios(r, "per second of processor time", compression,
			func(p phase) []compare.Ratio { return p.CPURatios }))
		tables[1], tables[2] = tables[2], tables[1]
	}
	for _, g := range tables {
		if len(g.Rows) > 0 {
			out.Grid(g)
		}
	}
}

// timed returns the phases of a compression that are of operations.
func timed(r *compare.Result, compression string) []compare.PhaseResult {
	return slices.DeleteFunc(slices.Clone(r.Phases),
		func(p compare.PhaseResult) bool { return p.Compression != compression || p.Unit == "" })
}

func compareTimes(r *compare.Result, what, compression string, rate func(compare.Series) float64) *Grid {
	g := newLines(what+" per operation, compression "+compression, 2,
		slices.Concat([]string{"workload", "per"}, r.Settings.Engines, []string{"allocs/op"})...)
	for _, p := range timed(r, compression) {
		row := []any{p.Title, p.Unit}
		var allocs []string
		for _, e := range p.Engines {
			ns := absentCell
			if perSecond := rate(e); perSecond > 0 {
				ns = nanos(1e9 / perSecond)
			}
			row = append(row, ns)
			if n := len(e.Samples); n > 0 {
				allocs = append(allocs, fixed(e.Samples[n-1].Allocs, 1))
			}
		}
		g.Add(append(row, strings.Join(allocs, " "))...)
	}
	return g
}

func compareRatios(r *compare.Result, of, compression string, ratios func(compare.PhaseResult) []compare.Ratio) *Grid {
	g := newLines("Times as many operations "+of+" as, compression "+compression, 1,
		append([]string{"workload"}, r.Settings.Engines[1:]...)...)
	for _, p := range timed(r, compression) {
		row := []any{p.Title}
		for _, x := range ratios(p) {
			row = append(row, ratioInterval(x))
		}
		g.Add(row...)
	}
	return g
}

// ratioInterval formats a ratio with its interval.
func ratioInterval(x compare.Ratio) string {
	if x.Repetitions == 0 {
		return absentCell
	}
	return between(ratio, x.Median, x.Low, x.High)
}

func compareLoads(r *compare.Result) *Grid {
	g := newLines("Loads", 2, "engine", "compression", "load s", "settle s", "CPU s", "written / data", "disk / data",
		"files")
	data := float64(r.Settings.Keys) * float64(r.Settings.KeySize+r.Settings.ValueSize)
	for _, l := range r.Loads {
		g.Add(l.Engine, l.Compression, fixed(l.LoadSeconds, 2), fixed(l.SettleSeconds, 2), fixed(l.CPUSeconds, 2),
			fixed(float64(l.WrittenBytes)/data, 2), fixed(float64(l.DiskBytes)/data, 2), l.Files)
	}
	return g
}

func compareFigures(r *compare.Result) *Grid {
	g := newLines("Other figures", 3, append([]string{"figure", "compression", "unit"}, r.Settings.Engines...)...)
	for _, f := range r.Figures {
		row := []any{f.Title, f.Compression, f.Unit}
		for _, e := range f.Engines {
			text := absentCell
			if len(e.Values) > 0 {
				text = figure(e.Median)
			}
			row = append(row, text)
		}
		g.Add(row...)
	}
	return g
}
