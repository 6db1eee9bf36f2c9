package readamp

import (
	"fmt"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
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

// String shows the failure in one line.
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

// A tallyRule holds for the files of one level as for those of all.
type tallyRule struct {
	name     string
	relation string // of left to right
	eval     func(engine.Tally) (left, right engine.Count)
}

var tallyRules = []tallyRule{
	{"filter checks = negatives + true positives + false positives", "=", func(t engine.Tally) (engine.Count, engine.Count) {
		return t.FilterChecks, t.Negatives.Plus(t.TruePositives).Plus(t.FalsePositives)
	}},
	{"files considered = ruled out by bounds or range tombstones + filter checks + unfiltered", "=", func(t engine.Tally) (engine.Count, engine.Count) {
		return t.FilesConsidered, t.OutOfBounds.Plus(t.OutOfRange).Plus(t.FilterChecks).Plus(t.Unfiltered)
	}},
	{"index lookups = unfiltered + true positives + false positives", "=", func(t engine.Tally) (engine.Count, engine.Count) {
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
	eval func(loop) (left, right engine.Count)
}

// A loop is a timed loop whose answers were all right.
type loop struct {
	kind    engine.Kind
	lookups engine.Count
	settled bool // the tree has one level of files that do not overlap
	engine.Counters
}

// found returns how many lookups found their key; every answer was checked.
func (l loop) found() engine.Count {
	if l.kind == engine.Existing {
		return l.lookups
	}
	return 0
}

var loopRules = []loopRule{
	{"lookups counted by the engine = lookups made", func(l loop) (engine.Count, engine.Count) {
		return l.Lookups, l.lookups
	}},
	{"answered by memtables and files = keys found", func(l loop) (engine.Count, engine.Count) {
		return l.MemtableAnswers.Plus(l.Total.Answered), l.found()
	}},
	{"files considered = lookups (settled tree)", func(l loop) (engine.Count, engine.Count) {
		if !l.settled {
			return engine.Unknown, 0
		}
		return l.Total.FilesConsidered, l.lookups
	}},
	{"true positives for absent keys = 0", func(l loop) (engine.Count, engine.Count) {
		if l.kind == engine.Existing {
			return engine.Unknown, 0
		}
		return l.Total.TruePositives, 0
	}},
	{"false negatives = 0 (negatives for existing keys in a settled tree)", func(l loop) (engine.Count, engine.Count) {
		if l.kind == engine.Absent || !l.settled {
			return engine.Unknown, 0
		}
		return l.Total.Negatives, 0
	}},
}

const (
	ruleLevels  = "sum over levels = total"
	ruleEntries = "entries in the tree = keys loaded"
	ruleAnswers = "wrong answers = 0 (every answer was checked)"
)

// checkIdentities evaluates every rule on every repetition of every row.
func checkIdentities(r *Result) Identities {
	c := &identityChecker{}
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
				c.where = fmt.Sprintf("%s, %s keys, repetition %d", row.Name, kind, n+1)
				c.loop(loop{kind, engine.Count(rep.Lookups), settled, rep.Counters})
			}
		}
	}
	for _, s := range r.Stores {
		c.where = s.Name
		c.equal(ruleEntries, engine.Count(s.Shape.Total().Entries), engine.Count(r.Keys.Present))
	}
	if r.Budget != nil {
		c.budget(r.Budget)
	}
	for _, rule := range tallyRules {
		c.out.Rules = append(c.out.Rules, rule.name)
	}
	for _, rule := range loopRules {
		c.out.Rules = append(c.out.Rules, rule.name)
	}
	c.out.Rules = append(c.out.Rules, ruleLevels, ruleEntries, ruleAnswers)
	if r.Budget != nil {
		c.out.Rules = append(c.out.Rules, budgetRules...)
	}
	return c.out
}

type identityChecker struct {
	where string
	out   Identities
}

// loop checks one timed loop.
func (c *identityChecker) loop(l loop) {
	for _, rule := range loopRules {
		left, right := rule.eval(l)
		c.equal(rule.name, left, right)
	}
	c.tally(l.Total)
	if len(l.Levels) == 0 {
		return
	}
	var sum engine.Tally
	where := c.where
	for i, t := range l.Levels {
		c.where = fmt.Sprintf("%s, level %d", where, i)
		c.tally(t)
		sum = sum.Plus(t)
	}
	c.where = where
	sum.EachPair(l.Total, func(name string, left, right engine.Count) {
		c.equal(ruleLevels+": "+name, left, right)
	})
}

func (c *identityChecker) tally(t engine.Tally) {
	for _, rule := range tallyRules {
		left, right := rule.eval(t)
		c.compare(rule.name, left, rule.relation, right)
	}
}

func (c *identityChecker) equal(rule string, left, right engine.Count) {
	c.compare(rule, left, "=", right)
}

// compare counts one instance of a rule, and notes it if it fails.
func (c *identityChecker) compare(rule string, left engine.Count, relation string, right engine.Count) {
	if !left.Known() || !right.Known() {
		c.out.Unknown++
		return
	}
	c.out.Checked++
	if left == right || relation == ">=" && left > right {
		return
	}
	c.out.Failures = append(c.out.Failures, Failure{c.where, rule, left, relation, right})
}
