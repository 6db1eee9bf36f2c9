package report

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/compare"
)

// Compare writes a result as text.
func Compare(w io.Writer, r *compare.Result) error {
	var out bytes.Buffer
	s := r.Settings
	fmt.Fprintf(&out, "Engines compared: %s keys of %d bytes, values of %d bytes, half compressible; %s of %g s, seed %d\n\nmachine   %s\nsettings  cache %s, memtable %s, blocks of %s, Bloom filters of 10 bits per key, batches of 100, no sync, %d compactions at most\n",
		grouped(int64(s.Keys)), s.KeyBytes, s.ValueBytes, times(s.Repetitions, "repetition"), s.Seconds, s.Seed,
		r.Environment.String(),
		bench.Size(s.Store.CacheBytes), bench.Size(s.Store.MemtableBytes), bench.Size(s.Store.BlockBytes),
		s.Store.Compactions)
	for i, name := range s.Engines {
		fmt.Fprintf(&out, "%-9s %s\n", name, s.Notes[i])
	}
	for _, compression := range s.Compressions {
		fmt.Fprintf(&out, "\nNanoseconds per operation, compression %s\n\n%s\n", compression,
			compareTimes(r, compression, func(s compare.Series) float64 { return s.PerSecond }).Render())
		fmt.Fprintf(&out, "\nNanoseconds of processor time per operation, compression %s\n\n%s\n", compression,
			compareTimes(r, compression, func(s compare.Series) float64 { return s.PerCPU }).Render())
		if len(s.Engines) > 1 {
			fmt.Fprintf(&out, "\nTimes as many operations per second as, compression %s\n\n%s\n", compression,
				compareRatios(r, compression, func(p compare.PhaseResult) []compare.Ratio { return p.Ratios }).Render())
			fmt.Fprintf(&out, "\nTimes as many operations per second of processor time as, compression %s\n\n%s\n",
				compression, compareRatios(r, compression,
					func(p compare.PhaseResult) []compare.Ratio { return p.CPURatios }).Render())
		}
	}
	if len(r.Loads) > 0 {
		fmt.Fprintf(&out, "\nLoads\n\n%s\n", compareLoads(r).Render())
	}
	if len(r.Figures) > 0 {
		fmt.Fprintf(&out, "\nOther figures\n\n%s\n", compareFigures(r).Render())
	}
	if len(r.Verdicts) > 0 {
		met := 0
		for _, v := range r.Verdicts {
			if v.Met {
				met++
			}
		}
		fmt.Fprintf(&out, "\nTargets: %d of %d met\n\n%s\n", met, len(r.Verdicts), compareTargets(r).Render())
	}
	writeList(&out, "Warnings", r.Warnings)
	fmt.Fprintf(&out, "\n%.0f s in all\n", r.WallSeconds)
	_, err := out.WriteTo(w)
	return err
}

func compareTimes(r *compare.Result, compression string, rate func(compare.Series) float64) table.Writer {
	header := table.Row{"workload", "per"}
	for _, name := range r.Settings.Engines {
		header = append(header, name)
	}
	t := newTable(2, append(header, "allocs/op"))
	for _, p := range r.Phases {
		if p.Compression != compression || p.Unit == "" {
			continue
		}
		row := table.Row{p.Title, p.Unit}
		var allocs []string
		for _, e := range p.Engines {
			row = append(row, nanosOf(rate(e)))
			if len(e.Samples) > 0 {
				allocs = append(allocs, strconv.FormatFloat(e.Samples[len(e.Samples)-1].Allocs, 'f', 1, 64))
			}
		}
		t.AppendRow(append(row, strings.Join(allocs, " ")))
	}
	return t
}

// nanosOf formats the time of an operation at a rate.
func nanosOf(perSecond float64) string {
	if perSecond <= 0 {
		return absentCell
	}
	return nanos(1e9 / perSecond)
}

func compareRatios(r *compare.Result, compression string, of func(compare.PhaseResult) []compare.Ratio) table.Writer {
	header := table.Row{"workload"}
	for _, name := range r.Settings.Engines[1:] {
		header = append(header, name)
	}
	t := newTable(1, header)
	for _, p := range r.Phases {
		if p.Compression != compression || p.Unit == "" {
			continue
		}
		row := table.Row{p.Title}
		for _, x := range of(p) {
			row = append(row, ratioInterval(x))
		}
		t.AppendRow(row)
	}
	return t
}

// ratioInterval formats a ratio with its interval.
func ratioInterval(x compare.Ratio) string {
	if x.Repetitions == 0 {
		return absentCell
	}
	return fmt.Sprintf("%s [%s, %s]", ratio(x.Median), ratio(x.Low), ratio(x.High))
}

func compareLoads(r *compare.Result) table.Writer {
	t := newTable(2, table.Row{"engine", "compression", "load s", "settle s", "CPU s", "written / data",
		"disk / data", "files"})
	data := float64(r.Settings.Keys) * float64(r.Settings.KeyBytes+r.Settings.ValueBytes)
	for _, l := range r.Loads {
		t.AppendRow(table.Row{
			l.Engine, l.Compression, fixed(l.LoadSeconds), fixed(l.SettleSeconds), fixed(l.CPUSeconds),
			fixed(float64(l.WrittenBytes) / data), fixed(float64(l.DiskBytes) / data), grouped(int64(l.Files)),
		})
	}
	return t
}

func fixed(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

func compareFigures(r *compare.Result) table.Writer {
	header := table.Row{"figure", "compression", "unit"}
	for _, name := range r.Settings.Engines {
		header = append(header, name)
	}
	t := newTable(3, header)
	for _, f := range r.Figures {
		row := table.Row{f.Title, f.Compression, f.Unit}
		for _, e := range f.Engines {
			cell := absentCell
			if len(e.Values) > 0 {
				cell = figureCell(e.Median)
			}
			row = append(row, cell)
		}
		t.AppendRow(row)
	}
	return t
}

// figureCell formats a figure with about three digits.
func figureCell(x float64) string {
	switch {
	case x >= 100:
		return whole(x)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return fixed(x)
}

func compareTargets(r *compare.Result) table.Writer {
	t := newTable(4, table.Row{"target", "compression", "times as good as", "decided by", "at least", "got", "",
		"by processor time"})
	for _, v := range r.Verdicts {
		verdict := "MISSED"
		if v.Met {
			verdict = "met"
		}
		if v.Uncertain {
			verdict += "?"
		}
		if v.Target == 0 {
			t.AppendRow(table.Row{v.Title, v.Compression, "", "", "0", fixed(v.Got.Median), verdict, absentCell})
			continue
		}
		t.AppendRow(table.Row{v.Title, v.Compression, v.Against, v.Got.Engine, ratio(v.Target), ratioInterval(v.Got),
			verdict, ratioInterval(v.CPU)})
	}
	return t
}
