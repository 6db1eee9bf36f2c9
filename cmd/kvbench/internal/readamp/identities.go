package readamp

import (
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// checkIdentities evaluates every rule on every repetition of every row.
func checkIdentities(r *Result) measure.Identities {
	c := &measure.Checker{}
	beyond := r.Keys.Replay != nil && r.Keys.Replay.Beyond > 0
	for i := range r.Rows {
		row := &r.Rows[i]
		s := r.store(row.Store)
		for _, kind := range engine.Kinds {
			c.Repetitions(row.Name, row.Phase(kind).Repetitions, row.Filter == engine.OracleFilter,
				measure.Loop{Kind: kind, Settled: s != nil && s.Settled, Beyond: beyond})
		}
	}
	for _, s := range r.Stores {
		c.Where = s.Name
		c.Equal(measure.RuleEntries, engine.Count(s.Shape.Total().Entries), engine.Count(r.Keys.Present))
	}
	c.Out.Rules = measure.Rules(slices.ContainsFunc(r.Rows,
		func(row Row) bool { return row.Filter == engine.OracleFilter }))
	if r.Budget != nil {
		checkBudget(c, r.Budget)
		c.Out.Rules = append(c.Out.Rules, budgetRules...)
	}
	return c.Out
}
