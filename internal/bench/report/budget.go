package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/readamp"
)

// writeBudget shows what spreading the bits of filters over the levels brings.
func writeBudget(out *bytes.Buffer, b *readamp.Budget) {
	fmt.Fprintf(out, "\nFilter budget: %s, the same bits for all keys against the same memory spread over the levels (Monkey)\n", b.Filter)
	fmt.Fprintf(out, "%s, compacted whole, and %s written again above them; %s, each asked for once\n\n%s\n\n",
		times(b.Keys, "key"), grouped(int64(b.Rewritten)), times(b.Lookups, "absent key"), budgetTable(b).Render())
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
	line("sum of rates, predicted, %", percent(u.PredictedSum), percent(s.PredictedSum), quotient(b.Predicted))
	line("sum of rates, measured, %", percent(u.MeasuredSum.Value), percent(s.MeasuredSum.Value), quotient(b.Measured))
	line("blocks per absent lookup", perLookup(u), perLookup(s), quotient(b.Blocks))
	line("ns per absent lookup", whole(u.NsPerLookup), whole(s.NsPerLookup), "")
	line("filters", filterSize(u), filterSize(s), fmt.Sprintf("%+.2f %%", 100*(b.Memory-1)))
}

// perLookup formats the data blocks that a lookup read.
func perLookup(s *readamp.BudgetStore) string { return fmt.Sprintf("%.4f", s.BlocksPerLookup) }

// filterSize formats the bytes of a store's filters.
func filterSize(s *readamp.BudgetStore) string {
	return bench.Size(s.Shape.Total().FilterBytes).String()
}

// budgetTable shows a line per level of each store, and its sums.
func budgetTable(b *readamp.Budget) table.Writer {
	t := newTable(2, table.Row{
		"", "level", "files", "runs", "keys", "bits\n/key", "FPR %\npredicted", "FPR %\nmeasured [95 %]",
		"probes\n/op", "blocks\n/op",
	})
	for _, s := range []*readamp.BudgetStore{&b.Uniform, &b.Spread} {
		runs := 0
		for i, l := range s.Levels {
			name := ""
			if i == 0 {
				name = s.Name
			}
			runs += l.Runs
			row := table.Row{
				name, fmt.Sprintf("L%d", l.Level), grouped(int64(s.Shape.Levels[i].Files)), grouped(int64(l.Runs)),
				grouped(l.Keys), bits(l.BitsPerKey), percent(l.Predicted), absentCell,
			}
			if m := l.Measured; m != nil {
				row[7] = interval(m.Value, m.Low, m.High)
			}
			t.AppendRow(append(row, budgetCounts(&s.Counters.Levels[l.Level], b.Lookups)...))
		}
		total, sum := s.Shape.Total(), s.MeasuredSum
		t.AppendRow(append(table.Row{
			"", "sum", grouped(int64(total.Files)), grouped(int64(runs)), grouped(total.Entries),
			bits(total.BitsPerKey()),
			percent(s.PredictedSum), interval(sum.Value, sum.Low, sum.High),
		}, budgetCounts(&s.Counters.Total, b.Lookups)...))
	}
	return t
}

// budgetCounts formats what n lookups did in a level, or in all.
func budgetCounts(t *engine.Tally, n int) table.Row {
	return table.Row{
		perOp(t.FilterChecks.Plus(t.Unfiltered), n), perOp(t.BlocksFromCache.Plus(t.BlocksFromDisk), n),
	}
}
