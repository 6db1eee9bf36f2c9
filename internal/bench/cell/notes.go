package cell

import (
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
)

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

// warnings says what makes the numbers less trustworthy.
func warnings(r *Result) []string {
	out := append([]string{}, r.Environment.Warnings...)
	out = append(out, replayWarnings(&r.Keys)...)
	if r.Pace != nil && r.Pace.warning() != "" {
		out = append(out, r.Pace.warning())
	}
	if n, cores := r.Settings.Threads, int64(r.Environment.GOMAXPROCS); n > cores {
		out = append(out, fmt.Sprintf(
			"%d workers share %d processors: their times are also those of waiting for a turn", n, cores))
	}
	if r.PageCache.Impossible != "" {
		out = append(out, "not cold: "+r.PageCache.Impossible)
	}
	if left := r.PageCache.Left; left > r.Build.LiveBytes/50 {
		out = append(out, fmt.Sprintf("not cold: %d bytes of the store stayed in the page cache", left))
	}
	return out
}

// replayNote says what was replayed.
func replayNote(k *keys.Description, lookups int64) string {
	t := k.Replay
	text := fmt.Sprintf("Replay of %d lookups of keys that were found and %d of keys that never were, recorded over %s: each kind by itself, in the recorded order, as fast as it goes, at most %d. The store has the %d keys that were found, and ",
		t.Existing, t.Absent, t.Span.Round(time.Millisecond), lookups, k.Present-t.Filled)
	if t.Filled > 0 {
		text += fmt.Sprintf("%d like them that are never looked up.", t.Filled)
	} else {
		text += "no others."
	}
	if t.Hashed {
		text += " The trace has hashes: keys are made up, and none is a neighbour of another that it was near."
	}
	if t.OneIn > 1 {
		text += fmt.Sprintf(" It has one key in %d: a cache that is as many times smaller finds about as much.",
			t.OneIn)
	}
	return text
}

// replayWarnings says what a trace lacks.
func replayWarnings(k *keys.Description) []string {
	t := k.Replay
	if t == nil {
		return nil
	}
	var out []string
	if t.Unfinished {
		out = append(out, "the trace has no end: lookups that came after are not in it")
	}
	if t.Dropped > 0 {
		out = append(out, fmt.Sprintf("the trace lacks %d lookups, which its writer was too slow for", t.Dropped))
	}
	if t.Missed > 0 {
		out = append(out, fmt.Sprintf("%d lookups did not find a key that others found: they are replayed as lookups of an existing key", t.Missed))
	}
	return out
}
