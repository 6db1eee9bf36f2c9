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

func funnelGrids(r *cell.Result) []*Grid {
	var grids []*Grid
	for _, kind := range []engine.Kind{engine.Absent, engine.Existing} {
		g := newGrid(fmt.Sprintf("A lookup of an %s key, by level (%s lookups)", kind, count(r.Phase(kind).Lookups)), 1,
			"level")
		for _, s := range cellTables.Funnel {
			g.Columns = append(g.Columns, Column{Name: s.Name})
		}
		add := func(name, level, missing string) {
			row := []any{name}
			for _, s := range cellTables.Funnel {
				text := missing
				if m := tidy.Find(r.Metrics, level, string(kind), s.Unit); m != nil {
					text = perOne(m.Value)
				}
				row = append(row, text)
			}
			g.Add(row...)
		}
		for _, m := range r.Metrics {
			if m.Level != "" && m.Kind == string(kind) && m.Unit == cellTables.Funnel[0].Unit {
				add("L"+m.Level, m.Level, "0")
			}
		}
		add("all", "", absentCell)
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
			for _, m := range r.Metrics {
				add := func(repetition any, x float64) {
					line(append(slices.Clip(settings), m.Kind, repetition, m.Level, m.Unit, m.Exact, x)...)
				}
				add("", m.Value)
				for i := 0; i < len(m.Samples) && len(m.Samples) > 1; i++ {
					add(i+1, m.Samples[i])
				}
			}
		}
	})
}
