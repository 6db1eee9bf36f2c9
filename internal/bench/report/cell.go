package report

import (
	"bytes"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/bench/cell"
	"github.com/siftkv/siftkv/internal/bench/engine"
)

// Cell writes everything about one result as text for a terminal: the tables of a set,
// and per level what lookups did, from files to bytes.
func Cell(w io.Writer, r *cell.Result) error {
	var out bytes.Buffer
	set := []*cell.Result{r}
	writeCommon(&out, set, NewLabels(set), "")
	fmt.Fprintf(&out, "name      %s\n", r.Name)
	for _, g := range append(funnelGrids(r), Grids(set)...) {
		out.WriteString("\n" + g.Text())
	}
	writeSetIdentities(&out, set)
	writeList(&out, "Notes", r.Notes)
	writeList(&out, "Warnings", r.Warnings)
	fmt.Fprintf(&out, "\n%.0f s in all\n", r.WallSeconds)
	_, err := out.WriteTo(w)
	return err
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
	{"no filter", func(t *engine.Tally) engine.Count { return t.Unfiltered }},
	{"index", func(t *engine.Tally) engine.Count { return t.IndexLookups }},
	{"cached blocks", func(t *engine.Tally) engine.Count { return t.BlocksFromCache }},
	{"disk blocks", func(t *engine.Tally) engine.Count { return t.BlocksFromDisk }},
	{"bytes read", func(t *engine.Tally) engine.Count { return t.BytesFromDisk }},
	{"bytes decoded", func(t *engine.Tally) engine.Count { return t.BytesDecoded }},
	{"answered", func(t *engine.Tally) engine.Count { return t.Answered }},
}

// funnelGrids show per level what a lookup did, for each kind of lookup.
func funnelGrids(r *cell.Result) []Grid {
	var grids []Grid
	for _, kind := range []engine.Kind{engine.Absent, engine.Existing} {
		p := r.Phase(kind)
		g := Grid{
			Title:   fmt.Sprintf("A lookup of an %s key, by level (%s lookups)", kind, grouped(int64(p.Lookups))),
			Columns: []Column{{Name: "level", Text: true}},
		}
		for _, s := range funnelSteps {
			g.Columns = append(g.Columns, Column{Name: s.name})
		}
		for i := range p.Counters.Levels {
			if t := &p.Counters.Levels[i]; t.FilesConsidered > 0 {
				g.Rows = append(g.Rows, funnelRow(fmt.Sprintf("L%d", i), t, p.Lookups))
			}
		}
		g.Rows = append(g.Rows, funnelRow("all", &p.Counters.Total, p.Lookups))
		grids = append(grids, g)
	}
	return grids
}

// funnelRow shows the counts of one level per lookup.
func funnelRow(name string, t *engine.Tally, lookups int) []Item {
	row := []Item{word(name)}
	for _, s := range funnelSteps {
		row = append(row, Item{Text: perOp(s.of(t), lookups)})
	}
	return row
}
