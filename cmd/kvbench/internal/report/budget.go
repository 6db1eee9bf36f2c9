package report

import (
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/readamp"
)

// writeBudget shows what spreading the bits of filters over the levels brings.
func writeBudget(out *page.Page, b *readamp.Budget) {
	out.Printf("\nFilter budget: %s, the same bits for all keys against the same memory spread over the levels "+
		"(Monkey)\n",
		b.Filter)
	g := budgetTable(b)
	g.Title = fmt.Sprintf("%s, compacted whole, and %s written again above them; %s, each asked for once",
		times(b.Keys, "key"), count(b.Rewritten), times(b.Lookups, "absent key"))
	out.WriteString(g.Text() + "\n")
	u, s := &b.Uniform, &b.Spread
	line := func(what, uniform, spread, gain string) {
		text := fmt.Sprintf("  %-28s %10s → %10s  %s", what, uniform, spread, gain)
		out.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	quotient := func(x float64) string {
		if x == 0 {
			return ""
		}
		return "÷ " + ratio(x)
	}
	filters := func(s *readamp.BudgetStore) string { return size(s.Shape.Total().FilterBytes) }
	line("sum of rates, predicted, %", percent(u.PredictedSum), percent(s.PredictedSum), quotient(b.Predicted))
	line("sum of rates, measured, %", percent(u.MeasuredSum.Value), percent(s.MeasuredSum.Value), quotient(b.Measured))
	line("blocks per absent lookup", fixed(u.BlocksPerLookup, 4), fixed(s.BlocksPerLookup, 4), quotient(b.Blocks))
	line("ns per absent lookup", whole(u.NsPerLookup), whole(s.NsPerLookup), "")
	line("filters", filters(u), filters(s), fmt.Sprintf("%+.2f %%", 100*(b.Memory-1)))
}

// budgetTable shows a line per level of each store, and its sums.
func budgetTable(b *readamp.Budget) *Grid {
	g := newLines("", 2, "", "level", "files", "runs", "keys", "bits\n/key", "FPR %\npredicted",
		"FPR %\nmeasured [95 %]", "probes\n/op", "blocks\n/op")
	probes := func(t *engine.Tally) string { return perOp(t.FilterChecks.Plus(t.Unfiltered), b.Lookups) }
	blocks := func(t *engine.Tally) string { return perOp(t.BlocksFromCache.Plus(t.BlocksFromDisk), b.Lookups) }
	for _, s := range []*readamp.BudgetStore{&b.Uniform, &b.Spread} {
		name, runs := s.Name, 0
		for i, l := range s.Levels {
			runs += l.Runs
			measured := absentCell
			if m := l.Measured; m != nil {
				measured = between(percent, m.Value, m.Low, m.High)
			}
			t := &s.Counters.Levels[l.Level]
			g.Add(name, levelName(l.Level), s.Shape.Levels[i].Files, l.Runs, l.Keys, bits(l.BitsPerKey),
				percent(l.Predicted), measured, probes(t), blocks(t))
			name = ""
		}
		total, sum, t := s.Shape.Total(), s.MeasuredSum, &s.Counters.Total
		g.Add("", "sum", total.Files, runs, total.Entries, bits(total.BitsPerKey()), percent(s.PredictedSum),
			between(percent, sum.Value, sum.Low, sum.High), probes(t), blocks(t))
	}
	return g
}
