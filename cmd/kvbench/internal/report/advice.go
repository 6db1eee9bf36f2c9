package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/advice"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
	"github.com/siftkv/siftkv/internal/advise"
)

// Advice writes a result as text for a terminal, with so many settings at most.
func Advice(w io.Writer, r *advice.Result, rows int) error {
	return write(w, func(out *page.Page) {
		a := r.Advice
		s := &a.Sample
		out.Printf("%s, %s: %s lookups of %s keys, %.0f %% found\n", r.Store, r.Trace, count(s.Lookups), count(s.Keys),
			100*float64(s.Found)/float64(max(1, s.Lookups)))
		for _, g := range AdviceGrids(r, rows) {
			out.Grid(g)
		}
		re := &a.Recommendation
		out.Printf("\nRecommendation\n\n  %s\n", re.Words)
		for line := range strings.Lines(re.Options) {
			out.Printf("    %s", line)
		}
		out.Printf("  Confidence: %s (%s).\n", re.Confidence, re.Why)
		if v := r.Verdict; v != nil {
			out.List("Verified", VerdictLines(v)...)
		}
		out.List("What cannot be known from here", a.Unknown...)
		out.Printf("\nPrices, ns: lookup %s, block in the cache %s, device read %s (%s)\n", nanos(a.Prices.Lookup),
			nanos(a.Prices.Cached), nanos(a.Prices.Read), a.Prices.From)
		out.End(nil, r.Seconds)
	})
}

// VerdictLines say what checks came to.
func VerdictLines(v *advice.Verdict) []string {
	part := func(n, of int) string { return fmt.Sprintf("%d of %d", n, of) }
	lines := []string{
		fmt.Sprintf("blocks per lookup predicted within 10 %%: %s settings (worst: %.1f %%)",
			part(v.BlocksIn10, v.Checks), 100*v.WorstBlocks),
		fmt.Sprintf("device reads per lookup predicted within 10 %%: %s settings (worst: %.1f %%)",
			part(v.ReadsIn10, v.Checks), 100*v.WorstReads),
	}
	if v.WithInterval > 0 {
		lines = append(lines, fmt.Sprintf("blocks of absent keys alone within 10 %%: %s settings; within the "+
			"predicted interval: %s", part(v.AbsentIn10, v.WithInterval), part(v.InInterval, v.WithInterval)))
	}
	return append(lines, fmt.Sprintf("the recommended setting costs %.1f %% more than the best measured one within "+
		"the limit of memory, %s", 100*v.Regret, v.BestMeasured))
}

// AdviceGrids returns the tables of a result.
func AdviceGrids(r *advice.Result, rows int) []*Grid {
	all := []*Grid{adviceRuns(r), adviceSettings(r, rows), adviceWorth(r)}
	if len(r.Advice.Styles) > 0 {
		all = append(all, adviceStyles(r))
	}
	if len(r.Checks) > 0 {
		all = append(all, adviceChecks(r))
		if r.Advice.Sample.Scans > 0 {
			all = append(all, adviceScans(r))
		}
	}
	return all
}

// adviceRuns shows the store.
func adviceRuns(r *advice.Result) *Grid {
	g := newGrid("Sorted runs, the youngest first", 1, "level", "files", "keys", "blocks", "size", "filter",
		"filter bytes")
	g.Columns[5].Text = true
	for _, run := range r.Shape {
		g.Add(levelName(run.Level), run.Files, count(run.Keys), count(run.Blocks), size(run.Bytes), run.Filter,
			size(run.FilterBytes))
	}
	return g
}

// adviceSettings shows what is there, what is recommended, and the front.
func adviceSettings(r *advice.Result, rows int) *Grid {
	g := newGrid("Predicted, per lookup; the settings that none beats at its memory", 2, "setting", "", "memory",
		"blocks", "absent blocks [95\u00a0%]", "device reads", "device bytes", "ns")
	a := r.Advice
	shown := slices.Clone(a.Front)
	if len(shown) > rows-2 && rows > 2 {
		slices.SortFunc(shown, func(x, y advise.Prediction) int {
			return cmp.Compare(math.Abs(math.Log(float64(x.Memory)/float64(a.Now.Memory))),
				math.Abs(math.Log(float64(y.Memory)/float64(a.Now.Memory))))
		})
		shown = shown[:rows-2]
	}
	if !slices.ContainsFunc(shown, func(p advise.Prediction) bool { return p.Setting == a.Now.Setting }) {
		shown = append(shown, a.Now)
	}
	if best := a.Recommendation.Setting; !slices.ContainsFunc(shown, func(p advise.Prediction) bool {
		return p.Setting == best.Setting
	}) {
		shown = append(shown, best)
	}
	slices.SortStableFunc(shown, func(x, y advise.Prediction) int { return cmp.Compare(x.Memory, y.Memory) })
	for i := range shown {
		p := &shown[i]
		g.Add(p.Name(), adviceMark(a, p), size(p.Memory), perOne(p.All.Blocks), adviceAbsent(p), perOne(p.All.Reads),
			size(p.All.Bytes), nanos(p.All.Nanos))
	}
	return g
}

// adviceMark says what a setting is.
func adviceMark(a *advise.Advice, p *advise.Prediction) string {
	switch p.Setting {
	case a.Now.Setting:
		return "now"
	case a.Recommendation.Setting.Setting:
		return "recommended"
	}
	return ""
}

func adviceAbsent(p *advise.Prediction) string {
	if p.Absent.Operations == 0 {
		return absentCell
	}
	return between(perOne, p.Absent.Blocks, p.Absent.Low, p.Absent.High)
}

// adviceWorth shows margins.
func adviceWorth(r *advice.Result) *Grid {
	g := newGrid("What more or less memory would buy", 3, "what", "from", "to", "memory",
		"device reads /million lookups", "saved /MiB", "ns/op")
	for _, w := range r.Advice.Worth {
		sign, bytes := "+", w.Bytes
		if bytes < 0 {
			sign, bytes = "-", -bytes
		}
		g.Add(w.What, w.From, w.To, sign+size(bytes), fmt.Sprintf("%+.0f", w.Reads), figure(max(0, w.ReadsPerMiB)),
			fmt.Sprintf("%+.1f", w.Nanos))
	}
	return g
}

// adviceStyles shows other styles of compaction.
func adviceStyles(r *advice.Result) *Grid {
	g := newGrid("By design, under each style of compaction, with the filter of new files", 2, "compaction", "",
		"runs", "at most", "blocks, existing key", "absent key", "absent, at most")
	for _, s := range r.Advice.Styles {
		now := ""
		if s.Now {
			now = "now"
		}
		g.Add(s.Style, now, figure(s.Runs), figure(s.Most), perOne(s.Found), perOne(s.Absent), perOne(s.Worst))
	}
	return g
}

// adviceChecks shows predictions beside measurements.
func adviceChecks(r *advice.Result) *Grid {
	g := newGrid("Predicted, measured, per lookup", 1, "setting", "memory", "blocks", "measured", "off %",
		"absent blocks [95\u00a0%]", "measured", "device reads", "measured", "off %", "bytes", "measured", "off %")
	off := func(x float64) string { return fmt.Sprintf("%+.1f", 100*x) }
	for i := range r.Checks {
		c := &r.Checks[i]
		p, m := &c.Setting, &c.Measured
		g.Add(p.Name(), size(p.Memory), perOne(p.All.Blocks), perOne(m.All.Blocks), off(c.Blocks), adviceAbsent(p),
			perOne(m.Absent.Blocks), perOne(p.All.Reads), perOne(m.All.Reads), off(c.Reads), size(p.All.Bytes),
			size(m.All.Bytes), off(c.Bytes))
	}
	return g
}

// adviceScans shows the same of scans.
func adviceScans(r *advice.Result) *Grid {
	g := newGrid("Predicted, measured, per scan", 1, "setting", "memory", "blocks", "measured", "off %", "device reads",
		"measured", "off %", "bytes", "measured")
	off := func(x float64) string { return fmt.Sprintf("%+.1f", 100*x) }
	for i := range r.Checks {
		c := &r.Checks[i]
		p, m := &c.Setting.Scans, &c.Measured.Scans
		g.Add(c.Setting.Name(), size(c.Setting.Memory), perOne(p.Blocks), perOne(m.Blocks), off(c.Scans),
			perOne(p.Reads), perOne(m.Reads), off(c.ScanReads), size(p.Bytes), size(m.Bytes))
	}
	return g
}
