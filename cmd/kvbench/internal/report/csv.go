package report

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// CellsCSV writes a set of results as tidy data: a line per cell, repetition, level and
// metric, with every setting in a column. Repetition and level are empty where a number
// is of all.
func CellsCSV(w io.Writer, set []*cell.Result) error {
	out := csv.NewWriter(w)
	names := cell.FieldNames()
	header := append([]string{"cell"}, names...)
	if err := out.Write(append(header, "kind", "repetition", "level", "metric", "exact", "value")); err != nil {
		return err
	}
	for _, r := range set {
		settings := []string{r.Name}
		for _, f := range cell.Fields(&r.Settings) {
			settings = append(settings, f.Text())
		}
		line := func(kind, rep, level, metric string, exact bool, value float64) {
			// A writer keeps its first error for Flush.
			_ = out.Write(append(slices.Clip(settings), kind, rep, level, metric,
				strconv.FormatBool(exact), strconv.FormatFloat(value, 'g', -1, 64)))
		}
		csvMetrics(r, line)
	}
	out.Flush()
	return out.Error()
}

// csvMetrics writes the metrics of a cell, their samples, and the counters by level.
func csvMetrics(r *cell.Result, line func(kind, rep, level, metric string, exact bool, value float64)) {
	for _, m := range r.Metrics {
		line(m.Kind, "", "", m.Unit, m.Exact, m.Value)
		if len(m.Samples) < 2 {
			continue
		}
		for i, x := range m.Samples {
			line(m.Kind, strconv.Itoa(i+1), "", m.Unit, m.Exact, x)
		}
	}
	for _, kind := range engine.Kinds {
		p := r.Phase(kind)
		for level := range p.Counters.Levels {
			t := p.Counters.Levels[level]
			t.EachPair(t, func(name string, count, _ engine.Count) {
				if count > 0 {
					line(string(kind), "", strconv.Itoa(level), name+"/op", r.Settings.CountsExactly(name),
						float64(count)/float64(p.Lookups))
				}
			})
		}
	}
}
