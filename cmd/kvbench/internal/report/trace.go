package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/traceinfo"
)

// Trace writes what is in a lookup trace as text for a terminal.
func Trace(w io.Writer, r *traceinfo.Trace) error {
	return write(w, func(out *Page) {
		form := "keys"
		if r.Hashed {
			form = "hashes of keys"
		}
		out.Printf("%s: a lookup trace with %s, %s\n\n", r.Path, form, size(r.Bytes))
		out.Printf("recorded  %s, over %s", r.Start.UTC().Format(time.DateTime+" UTC"), r.Span.Round(time.Millisecond))
		if r.OneIn > 1 {
			out.Printf("; one key in %s", count(r.OneIn))
		}
		out.Printf("\nlookups   %s", count(r.Lookups))
		if s := r.Span.Seconds(); s > 0 {
			out.Printf(", %s per second", count(int64(float64(r.Lookups)/s)))
		}
		out.Printf("; %s asked for the value, %s whether it is there\n", count(r.Values), count(r.Lookups-r.Values))
		out.Printf("keys      %d to %d bytes, %.1f in the mean of all lookups\n", r.Sizes.Min, r.Sizes.Max,
			r.Sizes.Mean)
		if s := &r.Scans; s.Scans > 0 {
			out.Printf("scans     %s of %.1f entries (at most %s), %s without any; %s bounded, by keys with %.1f "+
				"bytes in common\n          %s descending, %s broken off, %s of keys only\n", count(s.Scans), s.Entries,
				count(s.Most), count(s.Empty), count(s.Bounded), s.Common, count(s.Backward), count(s.Broken),
				count(s.KeysOnly))
		}
		out.Printf("dropped   %s\n", count(r.Dropped))
		out.Grid(traceTable(r))
		out.List("Warnings", r.Warnings()...)
	})
}

// traceTable tells keys that were found from those that never were.
func traceTable(r *traceinfo.Trace) *Grid {
	g := newGrid("Lookups by whether the key was ever found; top: % of them that asked for the most popular keys", 1,
		"keys", "lookups", "%\u00a0of\u00a0all", "distinct keys", "asked for\u00a0once",
		"top 0.1\u00a0%", "top 1\u00a0%", "top 10\u00a0%", "top 50\u00a0%")
	for _, p := range []struct {
		name string
		part traceinfo.Part
	}{{"found", r.Existing}, {"never found", r.Absent}} {
		share := absentCell
		if r.Lookups > 0 {
			share = percent(float64(p.part.Lookups) / float64(r.Lookups))
		}
		row := []any{p.name, p.part.Lookups, share, p.part.Keys, p.part.Once}
		for _, top := range p.part.Top {
			row = append(row, percent(top.OfLookups))
		}
		for len(row) < len(g.Columns) {
			row = append(row, absentCell)
		}
		g.Add(row...)
	}
	return g
}

// Environment writes what a result says of the machine and the program.
func Environment(w io.Writer, e *environ.Environment) error {
	return write(w, func(out *Page) {
		lines := [][2]string{
			{"kvbench", strings.TrimSpace(e.Version + " " + e.Revision)},
			{"go", fmt.Sprintf("%s %s/%s, GOMAXPROCS %d, cgo %t, race %t", e.GoVersion, e.OS, e.Arch, e.GOMAXPROCS,
				e.Cgo,
				e.Race)},
			{"GOGC", e.GOGC}, {"GOMEMLIMIT", e.GOMEMLIMIT},
			{"cpu", fmt.Sprintf("%s, %s", strings.TrimSpace(e.CPU+" "+e.Arch), times(e.Cores, "core"))},
			{"governor", e.Governor}, {"cpu quota", e.CPUQuota}, {"memory", size(e.RAMBytes)}, {"kernel", e.Kernel},
			{"directory", strings.TrimSpace(e.Dir + " " + e.Filesystem)}, {"load", fixed(e.Load1, 2)},
		}
		for _, d := range e.Dependencies {
			lines = append(lines, [2]string{"with", d.Path + " " + d.Version})
		}
		for _, line := range lines {
			if line[1] != "" {
				out.Printf("%-12s %s\n", line[0], line[1])
			}
		}
		out.List("Warnings", e.Warnings...)
	})
}
