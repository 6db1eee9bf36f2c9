package readamp

import (
	"math"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// fill computes levels, sums and costs from the shape and the counters of n
// lookups of absent keys. The policy is that of every file, or with a budget says
// the family.
func (s *BudgetStore) fill(policy filterpolicy.Policy, n int) {
	predict := namedRate
	if s.Tree.FilterBudgetBytes > 0 {
		predict = fittedRate
	}
	s.Levels = nil
	for _, l := range s.Shape.Levels {
		level := BudgetLevel{
			Level: l.Level, Runs: 1, Keys: l.Entries, BitsPerKey: l.BitsPerKey(),
			Predicted: predict(policy, l),
		}
		if l.Level == 0 {
			level.Runs = l.Files
		}
		if l.Level < len(s.Counters.Levels) {
			level.Measured = passRate(s.Counters.Levels[l.Level])
		}
		s.Levels = append(s.Levels, level)
	}
	s.PredictedSum, s.MeasuredSum = sumRates(s.Levels)
	total := s.Counters.Total
	s.BlocksPerLookup = float64(total.BlocksFromCache.Plus(total.BlocksFromDisk)) / float64(n)
}

// namedRate returns what theory says of a level's filters if each has the bits that
// the policy names. Without filters it is 1.
func namedRate(policy filterpolicy.Policy, l engine.LevelShape) float64 {
	if l.FilterBytes == 0 || l.Files == 0 {
		return 1
	}
	return filterpolicy.Expected(policy, int(l.Entries)/l.Files).FPR
}

// fittedRate returns what theory says of a level's filters from their family and the
// bits that they take. It is good for a family whose bits can be chosen freely, such
// as bloom, and coarse for one that has whole bits only. Without filters it is 1.
func fittedRate(family filterpolicy.Policy, l engine.LevelShape) float64 {
	if l.FilterBytes == 0 || l.Files == 0 {
		return 1
	}
	// A policy is named for the bits that its filters of many keys take. Those of few
	// keys take more (a footer, rounding): go from the bits taken to the bits named.
	want, bits := l.BitsPerKey(), l.BitsPerKey()
	rate, nearest := 1.0, math.Inf(1)
	for range 8 {
		p, ok := filterpolicy.WithBits(family, bits)
		if !ok {
			break
		}
		e := filterpolicy.Expected(p, int(l.Entries)/l.Files)
		over := e.BitsPerKey - want
		if math.Abs(over) < nearest {
			nearest, rate = math.Abs(over), e.FPR
		}
		bits -= over
	}
	return rate
}

// passRate returns the share of probes for absent keys that went on to the index:
// false positives, and probes of files without a filter. It is nil if there were no
// probes. All lookups were of distinct keys.
func passRate(t engine.Tally) *Rate {
	trials := t.FilterChecks.Plus(t.Unfiltered)
	if trials <= 0 || !t.IndexLookups.Known() {
		return nil
	}
	r := &Rate{Value: float64(t.IndexLookups) / float64(trials), Trials: int64(trials), Distinct: int64(trials)}
	r.Low, r.High = measure.Wilson(r.Value, float64(trials))
	return r
}

// sumRates adds up the rates of all runs. The interval of the measured sum is made
// of those of the levels: each end is as far from the sum as the root of the
// squared distances of theirs (G. Y. Zou and A. Donner, "Construction of confidence
// limits about effect measures: a general approach", Statistics in Medicine 27,
// 2008), which keeps the skew of rare events.
func sumRates(levels []BudgetLevel) (predicted float64, measured Sum) {
	below, above := 0.0, 0.0
	for _, l := range levels {
		runs := float64(l.Runs)
		predicted += runs * l.Predicted
		if l.Measured == nil {
			continue
		}
		measured.Value += runs * l.Measured.Value
		below = math.Hypot(below, runs*(l.Measured.Value-l.Measured.Low))
		above = math.Hypot(above, runs*(l.Measured.High-l.Measured.Value))
	}
	measured.Low, measured.High = measured.Value-below, measured.Value+above
	return predicted, measured
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
)

var budgetRules = []string{ruleBudgetLevels, ruleBudgetEntries}

// budget checks both stores by the rules of any timed loop, and that no lookup is
// missing from the rates.
func (c *identityChecker) budget(b *Budget) {
	for _, s := range []*BudgetStore{&b.Uniform, &b.Spread} {
		c.where = s.Name + ", absent keys"
		c.loop(loop{kind: engine.Absent, lookups: engine.Count(b.Lookups), Counters: s.Counters})
		probes, passed := engine.Count(0), engine.Count(0)
		for _, l := range s.Levels {
			if r := l.Measured; r != nil {
				probes += engine.Count(r.Trials)
				passed += engine.Count(math.Round(r.Value * float64(r.Trials)))
			}
		}
		total := s.Counters.Total
		c.equal(ruleBudgetLevels, probes, total.FilterChecks.Plus(total.Unfiltered))
		c.equal(ruleBudgetLevels, passed, total.IndexLookups)
		c.compare(ruleBudgetEntries, engine.Count(s.Shape.Total().Entries), ">=", engine.Count(b.Keys))
	}
}
