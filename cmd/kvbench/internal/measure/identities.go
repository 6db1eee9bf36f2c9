package measure

import (
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// Identities says which relations between counters were checked.
type Identities struct {
	Rules    []string  `json:"rules"`   // every relation, once
	Checked  int       `json:"checked"` // instances: by row, kind, repetition and level
	Unknown  int       `json:"unknown"` // instances with a counter that the engine does not keep
	Failures []Failure `json:"failures"`
}

// A Failure is an identity that does not hold.
type Failure struct {
	Where    string       `json:"where"`
	Rule     string       `json:"rule"`
	Left     engine.Count `json:"left"`
	Relation string       `json:"relation"` // "=" or ">="
	Right    engine.Count `json:"right"`
}

func (f Failure) String() string {
	return fmt.Sprintf("%s: %s: not so: %d %s %d", f.Where, f.Rule, f.Left, f.Relation, f.Right)
}

// Err returns nil if every identity held, and otherwise an error that matches
// bench.ErrIdentity and shows the first failure.
func (i *Identities) Err() error {
	if len(i.Failures) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s (%d failures in all; the counters cannot be trusted)",
		bench.ErrIdentity, i.Failures[0], len(i.Failures))
}

// Add adds what was checked of another cell.
func (i *Identities) Add(other *Identities) {
	for _, rule := range other.Rules {
		if !slices.Contains(i.Rules, rule) {
			i.Rules = append(i.Rules, rule)
		}
	}
	i.Checked += other.Checked
	i.Unknown += other.Unknown
	i.Failures = append(i.Failures, other.Failures...)
}

// A tallyRule holds for the files of one level as for those of all.
type tallyRule struct {
	name     string
	relation string // of left to right
	eval     func(engine.Tally) (left, right engine.Count)
}

var tallyRules = []tallyRule{
	{"filter checks = negatives + remembered + true positives + false positives", "=",
		func(t engine.Tally) (engine.Count, engine.Count) {
			return t.FilterChecks, t.Negatives.Plus(t.Remembered).Plus(t.TruePositives).Plus(t.FalsePositives)
		}},
	{"files considered = ruled out by bounds or range tombstones + filter checks + unfiltered", "=",
		func(t engine.Tally) (engine.Count, engine.Count) {
			return t.FilesConsidered, t.OutOfBounds.Plus(t.OutOfRange).Plus(t.FilterChecks).Plus(t.Unfiltered)
		}},
	{"index lookups = unfiltered + true positives + false positives", "=",
		func(t engine.Tally) (engine.Count, engine.Count) {
			return t.IndexLookups, t.Unfiltered.Plus(t.TruePositives).Plus(t.FalsePositives)
		}},
	// Not an equation: the versions of a key that separates two blocks may go on
	// in the second, which an engine may have to read to find that they do not.
	{"data blocks >= index lookups - ruled out by index", ">=", func(t engine.Tally) (engine.Count, engine.Count) {
		if !t.IndexLookups.Known() {
			return engine.Unknown, engine.Unknown // the blocks are not only data blocks
		}
		return t.BlocksFromCache.Plus(t.BlocksFromDisk), t.IndexLookups.Minus(t.OutOfIndex)
	}},
}

// A loopRule holds for all counters of one timed loop.
type loopRule struct {
	name string
	eval func(Loop) (left, right engine.Count)
}

// A Loop is a timed loop whose answers were all right.
type Loop struct {
	Kind    engine.Kind
	Made    engine.Count // lookups
	Settled bool         // the tree has one level of files that do not overlap
	Beyond  bool         // some of the keys are not between two that are there
	engine.Counters
}

// found returns how many lookups found their key; every answer was checked.
func (l Loop) found() engine.Count {
	if l.Kind == engine.Existing {
		return l.Made
	}
	return 0
}

var loopRules = []loopRule{
	{"lookups counted by the engine = lookups made", func(l Loop) (engine.Count, engine.Count) {
		return l.Lookups, l.Made
	}},
	{"answered by memtables and files = keys found", func(l Loop) (engine.Count, engine.Count) {
		return l.MemtableAnswers.Plus(l.Total.Answered), l.found()
	}},
	{"files considered = lookups (settled tree)", func(l Loop) (engine.Count, engine.Count) {
		if !l.Settled || l.Beyond {
			return engine.Unknown, 0
		}
		return l.Total.FilesConsidered, l.Made
	}},
	{"true positives for absent keys = 0", func(l Loop) (engine.Count, engine.Count) {
		if l.Kind == engine.Existing {
			return engine.Unknown, 0
		}
		return l.Total.TruePositives, 0
	}},
	{"false negatives = 0 (negatives for existing keys in a settled tree)", func(l Loop) (engine.Count, engine.Count) {
		if l.Kind == engine.Absent || !l.Settled {
			return engine.Unknown, 0
		}
		return l.Total.Negatives, 0
	}},
}

const (
	// RuleLevels is checked by Loop.
	RuleLevels = "sum over levels = total"
	// RuleEntries is for the caller to check, of a tree whose keys were written once.
	RuleEntries = "entries in the tree = keys loaded"
	// RuleOracle is checked by Repetitions, of stores with the filter that never errs.
	RuleOracle = "false positives of the oracle = 0"
	// RuleAnswers is checked by the loops of package measure.
	RuleAnswers = "wrong answers = 0 (every answer was checked)"
)

// Rules lists what a Checker's Loop checks, RuleEntries and RuleAnswers, and RuleOracle if
// there is one.
func Rules(oracle bool) []string {
	var names []string
	for _, rule := range tallyRules {
		names = append(names, rule.name)
	}
	for _, rule := range loopRules {
		names = append(names, rule.name)
	}
	names = append(names, RuleLevels, RuleEntries, RuleAnswers)
	if oracle {
		names = append(names, RuleOracle)
	}
	return names
}

// A Checker holds counters against each other and collects what it found.
type Checker struct {
	Where string // what is checked next
	Out   Identities
}

// Repetitions checks the timed loops of a cell, of which l says what they have in common.
func (c *Checker) Repetitions(name string, reps []Repetition, oracle bool, l Loop) {
	for n, rep := range reps {
		c.Where = fmt.Sprintf("%s, %s keys, repetition %d", name, l.Kind, n+1)
		if oracle {
			c.Equal(RuleOracle, rep.Counters.Total.FalsePositives.Plus(rep.Counters.Total.Remembered), 0)
		}
		l.Made, l.Counters = engine.Count(rep.Lookups), rep.Counters
		c.Loop(l)
	}
}

// Loop checks one timed loop.
func (c *Checker) Loop(l Loop) {
	for _, rule := range loopRules {
		left, right := rule.eval(l)
		c.Equal(rule.name, left, right)
	}
	c.tally(l.Total)
	if len(l.Levels) == 0 {
		return
	}
	var sum engine.Tally
	where := c.Where
	for i, t := range l.Levels {
		c.Where = fmt.Sprintf("%s, level %d", where, i)
		c.tally(t)
		sum = engine.Plus(sum, t)
	}
	c.Where = where
	sum.EachPair(l.Total, func(name string, left, right engine.Count) {
		c.Equal(RuleLevels+": "+name, left, right)
	})
}

func (c *Checker) tally(t engine.Tally) {
	for _, rule := range tallyRules {
		left, right := rule.eval(t)
		c.Compare(rule.name, left, rule.relation, right)
	}
}

// Equal checks one instance of a rule, which is an equation.
func (c *Checker) Equal(rule string, left, right engine.Count) {
	c.Compare(rule, left, "=", right)
}

// Compare counts one instance of a rule, and notes it if it fails.
func (c *Checker) Compare(rule string, left engine.Count, relation string, right engine.Count) {
	if !left.Known() || !right.Known() {
		c.Out.Unknown++
		return
	}
	c.Out.Checked++
	if left == right || relation == ">=" && left > right {
		return
	}
	c.Out.Failures = append(c.Out.Failures, Failure{c.Where, rule, left, relation, right})
}
