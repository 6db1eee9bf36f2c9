package cell

import (
	"math"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// result gathers what was measured of an open store, and derives from the counters what
// reports want to know.
func (x *run) result() (*Result, error) {
	r := &Result{
		Schema: Schema, Name: x.name, Settings: x.settings, Keys: x.source.Describe(), Build: x.built.about,
		Shape: x.built.shape, Pace: x.pace, PageCache: x.pageCache, Usage: engine.UnknownUsage(), Scans: x.scans,
		Environment: x.env, TimerNs: x.timer,
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
	r.Metrics, r.Identities = metrics(r), checkIdentities(r, x.variant.Null)
	r.Notes, r.Warnings = x.notes(r), warnings(r)
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
	checkLevels(r, c)
	c.Where = r.Name
	entries, present := engine.Count(r.Shape.Total().Entries), engine.Count(r.Keys.Present)
	if r.Build.Settled {
		c.Equal(measure.RuleEntries, entries, present)
	} else {
		c.Compare(measure.RuleEntries, entries, ">=", present)
	}
	return c.Out
}

// Rules of the rates of levels.
const (
	ruleRates = "probes and passes behind the rates of all levels = those counted in all"
	ruleRuns  = "runs, files, entries and filter bytes of the runs of a level = those of the level"
	ruleAsked = "lookups x runs of a level >= files considered there"
)

// checkLevels checks that no probe for an absent key is missing from the rates, that they are of as many runs as there
// are, and that no lookup asked more of them.
func checkLevels(r *Result, c *measure.Checker) {
	if len(r.Levels) == 0 {
		return
	}
	c.Out.Rules = append(c.Out.Rules, ruleRates, ruleRuns, ruleAsked)
	c.Where = r.Name + ", absent keys"
	probes, passed := engine.Count(0), engine.Count(0)
	for _, l := range r.Levels {
		if m := l.Measured; m != nil {
			probes += engine.Count(m.Trials)
			passed += engine.Count(math.Round(m.Value * float64(m.Trials)))
		}
	}
	total := r.Absent.Counters.Total
	c.Equal(ruleRates, probes, total.FilterChecks.Plus(total.Unfiltered))
	c.Equal(ruleRates, passed, total.IndexLookups.Plus(total.Remembered))
	for _, l := range r.Shape.Levels {
		sum := engine.Shape{Levels: r.Shape.RunsOf(l)}.Total()
		for _, pair := range [][2]int64{
			{int64(sum.Runs), int64(l.Runs)}, {int64(sum.Files), int64(l.Files)}, {sum.Entries, l.Entries},
			{sum.FilterBytes, l.FilterBytes},
		} {
			c.Equal(ruleRuns, engine.Count(pair[0]), engine.Count(pair[1]))
		}
		if l.Level < len(r.Absent.Counters.Levels) {
			c.Compare(ruleAsked, engine.Count(r.Absent.Lookups)*engine.Count(l.Runs), ">=",
				r.Absent.Counters.Levels[l.Level].FilesConsidered)
		}
	}
}
