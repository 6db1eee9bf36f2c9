package cell

import (
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// result gathers what was measured of an open store, and derives from the counters what
// reports want to know.
func (x *run) result() (*Result, error) {
	r := &Result{
		Schema: Schema, Name: x.name, Settings: x.settings, Keys: x.source.Describe(), Build: x.built.about,
		Shape: x.built.shape, Pace: x.pace, PageCache: x.pageCache, Usage: engine.UnknownUsage(),
	}
	if m, ok := x.built.store.(engine.Meter); ok {
		r.Usage = m.Usage()
	}
	for _, kind := range engine.Kinds {
		p, out := x.passes[kind], r.Phase(kind)
		if err := p.summarise(out, x.distinct(kind)); err != nil {
			return nil, err
		}
		if x.pace != nil && len(p.reps) > 0 {
			out.Service = new(measure.LatencyOf(p.service))
		}
	}
	total, spread := r.Shape.Total(), r.Settings.Budget == Spread
	r.BitsPerKey = total.BitsPerKey()
	if total.Files > 0 && total.FilterBytes > 0 && !spread { // each level has bits of its own: see Levels
		if bits, rate, ok := x.variant.Expected(int(total.Entries) / total.Files); ok {
			r.Theory = &measure.Theory{BitsPerKey: bits, FPR: rate}
		}
	}
	if len(r.Absent.Counters.Levels) > 0 {
		r.Levels = measure.LevelRates(r.Shape, r.Absent.Counters, x.distinct(engine.Absent), x.variant.Policy, spread)
		predicted, measured := measure.SumRates(r.Levels)
		r.Predicted, r.Sum = predicted, &measured
	}
	return r, nil
}

// checkIdentities evaluates every rule on every repetition.
func checkIdentities(r *Result, null bool) measure.Identities {
	c := &measure.Checker{}
	oracle := r.Settings.Filter == engine.OracleFilter
	for _, kind := range engine.Kinds {
		c.Repetitions(r.Name, r.Phase(kind).Repetitions, oracle, measure.Loop{Kind: kind,
			Settled: r.Build.Settled && !null, Beyond: r.Keys.Replay != nil && r.Keys.Replay.Beyond > 0})
	}
	c.Out.Rules = measure.Rules(oracle)
	checkScans(r, c)
	if null || r.Shape.Total().Entries == 0 {
		return c.Out // not a tree of files, or one that does not tell
	}
	c.Where = r.Name
	entries, present := engine.Count(r.Shape.Total().Entries), engine.Count(r.Keys.Present)
	if r.Build.Settled {
		c.Equal(measure.RuleEntries, entries, present)
	} else {
		c.Compare(measure.RuleEntries, entries, ">=", present)
	}
	return c.Out
}
