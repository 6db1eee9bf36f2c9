package report

import (
	"fmt"
	"io"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// Cell writes everything about one result as text for a terminal: the tables of a set,
// and per level what lookups did, from files to bytes.
func Cell(w io.Writer, r *cell.Result) error {
	return write(w, func(out *Page) {
		set := []*cell.Result{r}
		writeCommon(out, set, "")
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
