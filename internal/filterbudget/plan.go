// Package filterbudget says which filters new tables get: those of a store's options, or under a budget of bytes what
// their level's share of it pays for. It is a function of the options and of a version.
package filterbudget

import (
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// A Plan is what a store's options say of filters.
type Plan struct {
	Point        filterpolicy.Policy
	Ranges       filterpolicy.RangePolicy
	RangesOfLast bool   // the oldest run of the last level has range filters too
	Budget       int64  // bytes for the filters of all tables; 0: no bound
	RunsPerLevel int    // of a tiered store; 0: the store is leveled
	Prefix       string // name of the function that cuts prefixes off; "": there is none
	PrefixOnly   bool
}

// Filters are the policies of the filters of some tables.
type Filters struct {
	Point  filterpolicy.Policy
	Ranges filterpolicy.RangePolicy
}

// Tables are new tables of a version: they join a run, have a number of entries, and replace their inputs.
type Tables struct {
	Version *version.Version
	To      version.RunID
	Entries uint64
	Inputs  []*version.Table
}

const lastLevel = manifest.NumLevels - 1

// For returns the policies for new tables: those of the plan, or under a budget those of their families that the
// level's share pays for, and none if that is too little.
//
// Tables of level 0 come and go while those below stay, so no share is reserved for them. With many files in level 0
// the filters take a little more than the budget, instead of a little less all the time.
func (p *Plan) For(t Tables) Filters { return Filters{p.point(t), p.ranges(t)} }

// Fair is For once all files have the filters of the plan: none that stays has more than its share of a budget.
func (p *Plan) Fair(t Tables) Filters { return Filters{p.FairPoint(t), p.ranges(t)} }

// FairPoint is the policy for lookups of Fair.
func (p *Plan) FairPoint(t Tables) filterpolicy.Policy {
	if p.Budget == 0 {
		return p.Point
	}
	_, keys := p.sharers(t)
	return p.share(p.Budget, keys)
}

func (p *Plan) ranges(t Tables) filterpolicy.RangePolicy {
	if !p.RangesOfLast && t.Oldest() {
		return NoRanges
	}
	return p.Ranges
}

// Oldest reports whether the tables are in the oldest run of the last level once the inputs are gone: the only one
// there is in a leveled store.
func (t Tables) Oldest() bool {
	if t.To.Level < lastLevel {
		return false
	}
	replaced := map[version.RunID]int{}
	for _, in := range t.Inputs {
		if id, ok := t.Version.RunOf(in); ok {
			replaced[id]++
		}
	}
	return !slices.ContainsFunc(t.Version.Levels[lastLevel].Runs, func(r *version.Run) bool {
		return r.Num < t.To.Run && replaced[r.ID()] < r.Len()
	})
}

func (p *Plan) point(t Tables) filterpolicy.Policy {
	if p.Budget == 0 {
		return p.Point
	}
	stay, keys := p.sharers(t)
	bits := filterpolicy.Spread(p.Point, p.Budget, keys)
	// Tables that stay may have more than their share: they were written while there were
	// fewer keys. New tables have that much less, but stay useful.
	over := 0.0
	for i, s := range stay {
		over += float64(s.bytes) - bits[i]*float64(s.keys)/8
	}
	return p.share(p.Budget-min(max(int64(over), 0), p.Budget/mostOver), keys)
}

// mostOver bounds what new tables pay for those that stay: a part of the budget.
const mostOver = 4

// share returns the policy that the first of several runs, of which the keys are given, gets of a budget.
func (p *Plan) share(budget int64, keys []uint64) filterpolicy.Policy {
	if !filterpolicy.Expected(p.Point, 0).OK {
		return p.Point // the application's own: its size cannot be chosen
	}
	bits := filterpolicy.Spread(p.Point, budget, keys)[0]
	if policy, ok := filterpolicy.WithBits(p.Point, bits); ok {
		return policy
	}
	return None
}

// sharers returns the runs that share the budget with new tables, and their keys with those that come: the first is
// the run that the new tables join.
func (p *Plan) sharers(t Tables) ([]filtered, []uint64) {
	stay := t.runsThatStay()
	keys := make([]uint64, len(stay))
	for i, s := range stay {
		keys[i] = s.keys
	}
	keys[0] += t.Entries
	for range p.runsToCome(t) {
		keys = append(keys, t.Entries)
	}
	return stay, keys
}

// filtered says what filters take, and of how many keys.
type filtered struct {
	keys  uint64
	bytes int64
}

// runsThatStay returns what is left of each run without the inputs, the run that the tables join first.
func (t Tables) runsThatStay() []filtered {
	stay := make([]filtered, 1, 8)
	replaced := map[version.RunID]filtered{}
	for _, in := range t.Inputs {
		if id, ok := t.Version.RunOf(in); ok {
			sum := replaced[id]
			sum.keys += in.Entries
			sum.bytes += int64(in.FilterBytes)
			replaced[id] = sum
		}
	}
	others := t.Version.Runs
	if t.To.Level > 0 {
		others = t.Version.Below()
	}
	for _, r := range others {
		sum, less := r.Totals(), replaced[r.ID()]
		left := filtered{sum.Entries - less.keys, sum.FilterBytes - less.bytes}
		if t.To == r.ID() {
			stay[0] = left
		} else if left.keys > 0 {
			stay = append(stay, left)
		}
	}
	return stay
}

// runsToCome returns how many more runs, like the one that is being written, a level of a tiered store will have before
// they are merged. Their share is reserved, since runs keep the filters that they were written with.
func (p *Plan) runsToCome(t Tables) int {
	if t.To.Level == 0 || t.To.Level == lastLevel {
		return 0
	}
	return max(p.RunsPerLevel-t.Version.NumRuns(t.To.Level)-1, 0)
}

// None and NoRanges are the policies "none".
var (
	None     = filterpolicy.None()
	NoRanges = filterpolicy.NoRanges()
)
