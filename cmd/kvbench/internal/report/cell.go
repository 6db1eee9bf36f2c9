package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// Cell writes everything about one result as text for a terminal: the tables of a set,
// and per level what lookups did, from files to bytes.
func Cell(w io.Writer, r *cell.Result) error {
	return write(w, func(out *Page) {
		set := []*cell.Result{r}
		writeCommon(out, set)
		out.Printf("name      %s\n", r.Name)
		for _, g := range append(funnelGrids(r), Grids(set)...) {
			out.Grid(g)
		}
		identities(out, &r.Identities)
		out.List("Notes", r.Notes...)
		out.End(r.Warnings, r.WallSeconds)
	})
}

// funnelSteps are the steps of a lookup, from the files it considers to the answer.
var funnelSteps = []struct {
	name string
	of   func(*engine.Tally) engine.Count
}{
	{"files", func(t *engine.Tally) engine.Count { return t.FilesConsidered }},
	{"out of bounds", func(t *engine.Tally) engine.Count { return t.OutOfBounds.Plus(t.OutOfRange) }},
	{"filter checks", func(t *engine.Tally) engine.Count { return t.FilterChecks }},
	{"negatives", func(t *engine.Tally) engine.Count { return t.Negatives }},
	{"true+", func(t *engine.Tally) engine.Count { return t.TruePositives }},
	{"false+", func(t *engine.Tally) engine.Count { return t.FalsePositives }},
	{"remembered", func(t *engine.Tally) engine.Count { return t.Remembered }},
	{"no filter", func(t *engine.Tally) engine.Count { return t.Unfiltered }},
	{"index", func(t *engine.Tally) engine.Count { return t.IndexLookups }},
	{"cached blocks", func(t *engine.Tally) engine.Count { return t.BlocksFromCache }},
	{"disk blocks", func(t *engine.Tally) engine.Count { return t.BlocksFromDisk }},
	{"bytes read", func(t *engine.Tally) engine.Count { return t.BytesFromDisk }},
	{"bytes decoded", func(t *engine.Tally) engine.Count { return t.BytesDecoded }},
	{"answered", func(t *engine.Tally) engine.Count { return t.Answered }},
}

// funnelGrids show per level what a lookup did, for each kind of lookup.
func funnelGrids(r *cell.Result) []*Grid {
	var grids []*Grid
	for _, kind := range []engine.Kind{engine.Absent, engine.Existing} {
		p := r.Phase(kind)
		g := newGrid(fmt.Sprintf("A lookup of an %s key, by level (%s lookups)", kind, count(p.Lookups)), 1, "level")
		for _, s := range funnelSteps {
			g.Columns = append(g.Columns, Column{Name: s.name})
		}
		add := func(name string, t *engine.Tally) {
			row := []any{name}
			for _, s := range funnelSteps {
				row = append(row, perOp(s.of(t), p.Lookups))
			}
			g.Add(row...)
		}
		for i := range p.Counters.Levels {
			if t := &p.Counters.Levels[i]; t.FilesConsidered > 0 {
				add(levelName(i), t)
			}
		}
		add("all", &p.Counters.Total)
		grids = append(grids, g)
	}
	return grids
}

// CellsCSV writes a set of results as tidy data: a line per cell, repetition, level and metric, with every setting in a
// column. Repetition and level are empty where a number is of all.
func CellsCSV(w io.Writer, set []*cell.Result) error {
	header := append([]string{"cell"}, cell.FieldNames()...)
	header = append(header, "kind", "repetition", "level", "metric", "exact", "value")
	return tidy.CSV(w, header, func(line func(...any)) {
		for _, r := range set {
			settings := []any{r.Name}
			for _, s := range r.Settings.Shown() {
				settings = append(settings, s.Text)
			}
			csvMetrics(r, func(fields ...any) { line(append(slices.Clip(settings), fields...)...) })
		}
	})
}

// csvMetrics writes the metrics of a cell, their samples, and the counters by level.
func csvMetrics(r *cell.Result, line func(fields ...any)) {
	for _, m := range r.Metrics {
		line(m.Kind, "", "", m.Unit, m.Exact, m.Value)
		if len(m.Samples) < 2 {
			continue
		}
		for i, x := range m.Samples {
			line(m.Kind, i+1, "", m.Unit, m.Exact, x)
		}
	}
	for _, kind := range engine.Kinds {
		p := r.Phase(kind)
		for level, t := range p.Counters.Levels {
			t.EachPair(t, func(name string, count, _ engine.Count) {
				if count > 0 {
					line(kind, "", level, name+"/op", r.Settings.CountsExactly(name), float64(count)/float64(p.Lookups))
				}
			})
		}
	}
}
