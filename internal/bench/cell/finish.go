package cell

import (
	"fmt"

	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// finish derives from the counters what reports want to know.
func (x *run) finish(r *Result) {
	total := r.Shape.Total()
	r.BitsPerKey = total.BitsPerKey()
	// spread, each level has bits of its own: see Levels
	if total.Files > 0 && total.FilterBytes > 0 && r.Settings.Budget != Spread {
		if bits, rate, ok := x.variant.Expected(int(total.Entries) / total.Files); ok {
			r.Theory = &measure.Theory{BitsPerKey: bits, FPR: rate}
		}
	}
	if len(r.Absent.Counters.Levels) > 0 {
		r.Levels = measure.LevelRates(r.Shape, r.Absent.Counters, x.absentDistinct, x.variant.Policy,
			r.Settings.Budget == Spread)
		predicted, measured := measure.SumRates(r.Levels)
		r.Predicted, r.Sum = predicted, &measured
	}
	r.Metrics = metrics(r)
	r.Identities = checkIdentities(r, x.variant.Null)
	r.Notes = x.notes(r)
	r.Warnings = append([]string{}, r.Environment.Warnings...)
	r.Warnings = append(r.Warnings, replayWarnings(&r.Keys)...)
	if r.Pace != nil && r.Pace.warning() != "" {
		r.Warnings = append(r.Warnings, r.Pace.warning())
	}
	if n, cores := r.Settings.Threads, int64(r.Environment.GOMAXPROCS); n > cores {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"%d workers share %d processors: their times are also those of waiting for a turn", n, cores))
	}
	if r.PageCache.Impossible != "" {
		r.Warnings = append(r.Warnings, "not cold: "+r.PageCache.Impossible)
	}
	if left := r.PageCache.Left; left > r.Build.LiveBytes/50 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("not cold: %d bytes of the store stayed in the page cache", left))
	}
}

// checkIdentities evaluates every rule on every repetition.
func checkIdentities(r *Result, null bool) measure.Identities {
	c := &measure.Checker{}
	for _, kind := range engine.Kinds {
		for n, rep := range r.Phase(kind).Repetitions {
			c.Where = fmt.Sprintf("%s, %s keys, repetition %d", r.Name, kind, n+1)
			if r.Settings.Filter == engine.OracleFilter {
				c.Equal(measure.RuleOracle, rep.Counters.Total.FalsePositives, 0)
			}
			c.Loop(measure.Loop{Kind: kind, Made: engine.Count(rep.Lookups), Settled: r.Build.Settled && !null,
				Beyond: r.Keys.Replay != nil && r.Keys.Replay.Beyond > 0, Counters: rep.Counters})
		}
	}
	c.Out.Rules = measure.Rules()
	if r.Settings.Filter == engine.OracleFilter {
		c.Out.Rules = append(c.Out.Rules, measure.RuleOracle)
	}
	if null {
		return c.Out
	}
	if r.Shape.Total().Entries == 0 {
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

// notes says how the numbers are to be read.
func (x *run) notes(r *Result) []string {
	notes := []string{}
	if r.Settings.State == Cold {
		notes = append(notes, "Cold: before each loop the store was closed, its files were dropped from the page cache, and it was opened again. Within a loop caches fill.")
	} else {
		notes = append(notes, "Warm: a pass of lookups ran before; the operating system's page cache holds the files, and a block from disk is a read from the file.")
	}
	if x.settings.Workload == Replay {
		notes = append(notes, replayNote(&r.Keys, x.settings.Lookups))
		if r.Pace != nil {
			notes = append(notes, r.Pace.note())
		}
	}
	if r.Settings.Engine == "pebble" {
		notes = append(notes, "Pebble's Get does not consult the filters of the last level.")
	}
	if x.variant.Access == engine.Iterator {
		notes = append(notes, "One iterator is reused with UseL6Filters and SeekPrefixGE: it does not see later writes.")
	}
	if r.Settings.Engine == "pebble" || x.variant.Access == engine.Iterator {
		notes = append(notes, "Pebble's blocks and bytes include index and filter blocks, which it reads through its block cache.")
	}
	if r.Settings.Engine == engine.RocksDBName {
		notes = append(notes, engine.RocksDBNote())
	}
	if r.Settings.Filter == engine.OracleFilter {
		notes = append(notes, "The oracle never errs. The keys of each file are in the memory of kvbench and not counted; a file has eight bytes in place of a filter. Its times are those of a hash table.")
	}
	return notes
}
