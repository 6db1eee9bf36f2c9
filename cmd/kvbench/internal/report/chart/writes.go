package chart

import (
	"fmt"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/ycsb"
)

// lanes names the lanes of background work, which js/charts.js has in the order in which it draws them.
var lanes = map[engine.BackgroundKind]string{
	engine.Flush: "flushes", engine.Compaction: "compactions", engine.Stall: "stalls",
}

// writes shows how each store was filled. Cells that share a store show it once.
func writes(set []*cell.Result, labels []string) Chart {
	var names []string
	var lines []*measure.Timeline
	seen := map[string]bool{}
	for i, r := range set {
		build := r.Settings.BuildText()
		if r.Build.Timeline == nil || seen[build] {
			continue
		}
		seen[build] = true
		names, lines = append(names, labels[i]), append(lines, r.Build.Timeline)
	}
	return Over(names, lines, "writes", "Writes per second while a store is filled", "writes per second")
}

// Over draws timelines, called by the names.
func Over(names []string, lines []*measure.Timeline, id, title, perSecond string) Chart {
	c := Chart{
		ID: id, Title: title, Form: Times,
		X: Axis{Name: "time", Unit: Seconds},
		Y: Axis{Name: perSecond},
		Note: "Below: when memtables were flushed, when files were compacted, and when writes had to wait. Engines " +
			"other than SiftKV and Pebble do not say.",
	}
	for i, t := range lines {
		s := Series{Name: names[i], Line: true}
		for n, count := range t.Operations {
			s.Points = append(s.Points, Point{X: (float64(n) + 0.5) * t.Interval, Y: float64(count) / t.Interval})
		}
		for _, e := range t.Events {
			m := Mark{Lane: lanes[e.Kind], From: e.From, To: e.To}
			switch e.Kind {
			case engine.Flush:
				m.Label = "flush, " + bench.Size(e.Bytes).String()
			case engine.Compaction:
				m.Label = fmt.Sprintf("compaction L%d to L%d, %s", e.Level, e.OutputLevel, bench.Size(e.Bytes))
			case engine.Stall:
				m.Label = "writes wait"
			}
			s.Marks = append(s.Marks, m)
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// YCSB returns the page of a run: each workload over time, one line per engine, and the table.
func YCSB(r *tidy.Result) *Data {
	d := &Data{Title: "YCSB", Machines: []string{r.Environment.String()}, Grids: report.TidyGrids(r),
		Notes: r.Notes, Warnings: r.Environment.Warnings}
	for _, name := range ycsb.Names {
		var engines []string
		var lines []*measure.Timeline
		for _, t := range r.Timelines {
			if t.Cell["workload"] == name {
				engines, lines = append(engines, t.Cell["engine"]), append(lines, t.Timeline)
			}
		}
		if len(lines) > 0 {
			d.Charts = append(d.Charts, Over(engines, lines, "ycsb-"+name, "YCSB workload "+name+" over time",
				"operations per second"))
		}
	}
	return d
}

// ratioColumns are the metrics that are compared with those of the baseline.
var ratioColumns = []struct{ kind, unit, name string }{
	{"absent", "blocks/op", "absent blocks"},
	{"absent", "ns/op", "absent time"},
	{"absent", "p99-ns", "absent p99"},
	{"existing", "blocks/op", "existing blocks"},
	{"existing", "ns/op", "existing time"},
	{"existing", "p99-ns", "existing p99"},
	{cell.StoreKind, "filter-bits/key", "filter bits"},
	{cell.StoreKind, "space-amp", "space amp"},
	{cell.StoreKind, "write-amp", "write amp"},
	{cell.StoreKind, "build-s", "build time"},
}

// ratios holds every cell against the first that is a store.
func ratios(set []*cell.Result, labels []string) Chart {
	c := Chart{
		ID: "ratios", Title: "Every cell beside a baseline", Form: Ratios, Baseline: -1, Categories: labels,
		Note: "Times as much as the baseline has; less is better. Blue is less, orange is more, full from eight " +
			"times on.",
	}
	for i, r := range set {
		if c.Baseline < 0 && r.Metric(cell.StoreKind, "files") != nil {
			c.Baseline = i
		}
	}
	if c.Baseline < 0 || len(set) < 2 {
		return Chart{}
	}
	for _, column := range ratioColumns {
		s, known := Series{Name: column.name}, false
		for _, r := range set {
			value := -1.0
			if m := r.Metric(column.kind, column.unit); m != nil {
				value, known = m.Value, true
			}
			s.Values = append(s.Values, value)
		}
		if known {
			c.Series = append(c.Series, s)
		}
	}
	return c
}
