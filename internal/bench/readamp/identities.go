package readamp

import (
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// checkIdentities evaluates every rule on every repetition of every row.
func checkIdentities(r *Result) measure.Identities {
	c := &measure.Checker{}
	for i := range r.Rows {
		row := &r.Rows[i]
		settled := false
		for _, s := range r.Stores {
			if s.Name == row.Store {
				settled = s.Settled
			}
		}
		for _, kind := range engine.Kinds {
			for n, rep := range row.Phase(kind).Repetitions {
				c.Where = fmt.Sprintf("%s, %s keys, repetition %d", row.Name, kind, n+1)
				if row.Filter == engine.OracleFilter {
					c.Equal(measure.RuleOracle, rep.Counters.Total.FalsePositives, 0)
				}
				c.Loop(measure.Loop{Kind: kind, Made: engine.Count(rep.Lookups), Settled: settled,
					Counters: rep.Counters})
			}
		}
	}
	for _, s := range r.Stores {
		c.Where = s.Name
		c.Equal(measure.RuleEntries, engine.Count(s.Shape.Total().Entries), engine.Count(r.Keys.Present))
	}
	c.Out.Rules = measure.Rules()
	if slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Filter == engine.OracleFilter }) {
		c.Out.Rules = append(c.Out.Rules, measure.RuleOracle)
	}
	if r.Budget != nil {
		checkBudget(c, r.Budget)
		c.Out.Rules = append(c.Out.Rules, budgetRules...)
	}
	return c.Out
}
