package readamp

import (
	"math"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/filterpolicy"
)

// fill computes levels, sums and costs from lookups of distinct absent keys. The policy is
// that of every file, or with a budget says the family.
func (s *BudgetStore) fill(policy filterpolicy.Policy, reps []measure.Repetition) {
	p := measure.Summarise(reps, measure.NewHistogram(), 1)
	nanos := int64(0)
	for _, r := range reps {
		nanos += r.Nanos
	}
	s.Counters, s.NsPerLookup = p.Counters, float64(nanos)/float64(p.Lookups)
	s.Levels = measure.LevelRates(s.Shape, s.Counters, 1, policy, s.Tree.FilterBudgetBytes > 0)
	s.PredictedSum, s.MeasuredSum = measure.SumRates(s.Levels)
	total := s.Counters.Total
	s.BlocksPerLookup = float64(total.BlocksFromCache.Plus(total.BlocksFromDisk)) / float64(p.Lookups)
}

// gains sets the two stores against each other. A quotient by zero is 0.
func (b *Budget) gains() {
	quotient := func(x, y float64) float64 {
		if y == 0 {
			return 0
		}
		return x / y
	}
	u, s := &b.Uniform, &b.Spread
	b.Memory = quotient(float64(s.Shape.Total().FilterBytes), float64(u.Shape.Total().FilterBytes))
	b.Predicted = quotient(u.PredictedSum, s.PredictedSum)
	b.Measured = quotient(u.MeasuredSum.Value, s.MeasuredSum.Value)
	b.Blocks = quotient(u.BlocksPerLookup, s.BlocksPerLookup)
}

const (
	ruleBudgetLevels  = "budget: probes and index lookups behind the rates of all levels = those counted in all"
	ruleBudgetEntries = "budget: entries in the tree >= keys loaded"
	ruleBudgetRuns    = "budget: runs, files, entries and filter bytes of the runs of a level = those of the level"
	ruleBudgetAsked   = "budget: lookups x runs of a level >= files considered there"
)

var budgetRules = []string{ruleBudgetLevels, ruleBudgetEntries, ruleBudgetRuns, ruleBudgetAsked}

// checkBudget checks both stores by the rules of any timed loop, and that no lookup is
// missing from the rates.
func checkBudget(c *measure.Checker, b *Budget) {
	for _, s := range []*BudgetStore{&b.Uniform, &b.Spread} {
		c.Where = s.Name + ", absent keys"
		c.Loop(measure.Loop{Kind: engine.Absent, Made: engine.Count(b.Lookups), Counters: s.Counters})
		probes, passed := engine.Count(0), engine.Count(0)
		for _, l := range s.Levels {
			if r := l.Measured; r != nil {
				probes += engine.Count(r.Trials)
				passed += engine.Count(math.Round(r.Value * float64(r.Trials)))
			}
		}
		total := s.Counters.Total
		c.Equal(ruleBudgetLevels, probes, total.FilterChecks.Plus(total.Unfiltered))
		c.Equal(ruleBudgetLevels, passed, total.IndexLookups)
		c.Compare(ruleBudgetEntries, engine.Count(s.Shape.Total().Entries), ">=", engine.Count(b.Keys))
		checkRuns(c, s, b.Lookups)
	}
}

// checkRuns checks that the rates are of as many runs as there are, and that no lookup
// asked more of them.
func checkRuns(c *measure.Checker, s *BudgetStore, lookups int) {
	for _, l := range s.Shape.Levels {
		sum := engine.Shape{Levels: s.Shape.RunsOf(l)}.Total()
		for _, pair := range [][2]int64{
			{int64(sum.Runs), int64(l.Runs)}, {int64(sum.Files), int64(l.Files)}, {sum.Entries, l.Entries},
			{sum.FilterBytes, l.FilterBytes},
		} {
			c.Equal(ruleBudgetRuns, engine.Count(pair[0]), engine.Count(pair[1]))
		}
		c.Compare(ruleBudgetAsked, engine.Count(lookups)*engine.Count(l.Runs), ">=",
			s.Counters.Levels[l.Level].FilesConsidered)
	}
}
