package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// A budget compares two trees of the same keys whose filters take the same memory: in one every key has the same bits,
// in the other kv.Options.FilterBudget spreads them over the levels.
type budget struct{ uniform, spread *cell.Result }

const budgetNote = "Filter budget: a run is a sorted sequence of files, of which a lookup may have to ask one: each " +
	"flush in level 0, and one or (tiered) several of any other level; the sum of rates is over all runs, and what " +
	"an absent key costs in reads where it lies within the bounds of each (probes/op says how many did). Predicted: " +
	"theory; under the budget at the bits that the level's filters take."

// filterBytes returns the bytes of the filters of a tree.
func filterBytes(r *cell.Result) int64 { return r.Shape.Total().FilterBytes }

// more returns which part more the filters with the budget take.
func (b *budget) more() float64 {
	return float64(filterBytes(b.spread))/float64(filterBytes(b.uniform)) - 1
}

// equalMemory is how far the memory of two stores may differ to be called equal.
const equalMemory = 0.02

// warnings says what makes the comparison less trustworthy.
func (b *budget) warnings() []string {
	if math.Abs(b.more()) <= equalMemory {
		return nil
	}
	return []string{fmt.Sprintf(
		"filter budget: the filters take %+.1f %% against uniform bits, which is not equal memory: "+
			"footers and rounding weigh in filters of few keys, and the budget does not count them", 100*b.more())}
}

// write shows what spreading the bits of filters over the levels brings.
func (b *budget) write(out *Page) {
	u := b.uniform
	out.Printf("\nFilter budget: %s, the same bits for all keys against the same memory spread over the levels "+
		"(Monkey)\n", u.Settings.Filter)
	g := b.table()
	g.Title = fmt.Sprintf("%s, loaded in flushes with a rest after each, and %s written again; %s of absent keys",
		times(u.Keys.Present, "key"), count(u.Build.Rewritten), times(u.Absent.Lookups, "lookup"))
	out.WriteString(g.Text() + "\n")
	line := func(what string, show func(float64) string, of func(*cell.Result) float64,
		gain func(x, y float64) string) {
		x, y := of(b.uniform), of(b.spread)
		text := fmt.Sprintf("  %-28s %10s → %10s  %s", what, show(x), show(y), gain(x, y))
		out.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	quotient := func(x, y float64) string {
		if y == 0 {
			return ""
		}
		return "÷ " + ratio(x/y)
	}
	line("sum of rates, predicted, %", percent, func(r *cell.Result) float64 { return r.Predicted }, quotient)
	line("sum of rates, measured, %", percent, func(r *cell.Result) float64 { return r.Sum.Value }, quotient)
	line("blocks per absent lookup", func(x float64) string { return fixed(x, 4) }, func(r *cell.Result) float64 {
		return float64(r.Absent.Counters.Total.Blocks()) / float64(r.Absent.Lookups)
	}, quotient)
	line("ns per absent lookup", whole, func(r *cell.Result) float64 { return r.Absent.NsPerLookup },
		func(_, _ float64) string { return "" })
	line("filters", size[float64], func(r *cell.Result) float64 { return float64(filterBytes(r)) },
		func(_, _ float64) string { return fmt.Sprintf("%+.2f %%", 100*b.more()) })
}

// table shows a line per level of each store, and its sums.
func (b *budget) table() *Grid {
	g := newLines("", 2, "", "level", "files", "runs", "keys", "bits\n/key", "FPR %\npredicted",
		"FPR %\nmeasured [95 %]", "probes\n/op", "blocks\n/op")
	for _, r := range []*cell.Result{b.uniform, b.spread} {
		probes := func(t *engine.Tally) string { return perOp(t.FilterChecks.Plus(t.Unfiltered), r.Absent.Lookups) }
		blocks := func(t *engine.Tally) string { return perOp(t.Blocks(), r.Absent.Lookups) }
		name := r.Name
		for i, l := range r.Levels {
			t := &r.Absent.Counters.Levels[l.Level]
			g.Add(name, levelName(l.Level), r.Shape.Levels[i].Files, l.Runs, l.Keys, bits(l.BitsPerKey),
				percent(l.Predicted), rateItem(l.Measured), probes(t), blocks(t))
			name = ""
		}
		total, sum, t := r.Shape.Total(), r.Sum, &r.Absent.Counters.Total
		g.Add("", "sum", total.Files, total.Runs, total.Entries, bits(total.BitsPerKey()), percent(r.Predicted),
			between(percent, sum.Value, sum.Low, sum.High), probes(t), blocks(t))
	}
	return g
}
