package cell

import (
	"fmt"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// notes says how the numbers are to be read.
func (x *run) notes(r *Result) []string {
	n, s := bench.Remarks{}, &r.Settings
	iterator := x.variant.Access == engine.Iterator
	n.If(s.State == Cold, "Cold: before each loop the store was closed, its files were dropped from the page cache, "+
		"and it was opened again. Within a loop caches fill.")
	n.If(s.State != Cold, "Warm: a pass of lookups ran before; the operating system's page cache holds the files, "+
		"and a block from disk is a read from the file.")
	if s.Workload == Replay {
		n = append(n, replayNote(&r.Keys, s.Lookups))
		if r.Pace != nil {
			n = append(n, r.Pace.note())
		}
	}
	n.If(s.Engine == "pebble", "Pebble's Get does not consult the filters of the last level (L6), and a settled tree "+
		"is all last level: it shows no filter checks whatever the filter.")
	n.If(iterator, "One iterator is reused with UseL6Filters and SeekPrefixGE: it does not see later writes.")
	n.If(s.Engine == "pebble" || iterator, "Pebble's blocks and bytes include index and filter blocks, which it "+
		"reads through its block cache; SiftKV's are data blocks, since it keeps index and filters in memory.")
	n.If(s.Engine == engine.RocksDBName, "%s", engine.RocksDBNote())
	n.If(s.Filter == engine.OracleFilter, "The oracle never errs. The keys of each file are in the memory of kvbench "+
		"and not counted; a file has eight bytes in place of a filter. Its times are those of a hash table.")
	return n
}

// warnings says what makes the numbers less trustworthy.
func warnings(r *Result) []string {
	w := append(bench.Remarks{}, r.Environment.Warnings...)
	w = append(w, replayWarnings(&r.Keys)...)
	w.If(r.Pace.warning() != "", "%s", r.Pace.warning())
	w.If(r.Settings.Threads > int64(r.Environment.GOMAXPROCS),
		"%d workers share %d processors: their times are also those of waiting for a turn", r.Settings.Threads,
		r.Environment.GOMAXPROCS)
	w.If(r.Settings.Shape == Settled && len(r.Shape.Levels) > 0 && !r.Build.Settled,
		"%s is not settled: its files are in %d levels", r.Name, len(r.Shape.Levels))
	w.If(r.PageCache.Impossible != "", "not cold: %s", r.PageCache.Impossible)
	w.If(r.PageCache.Left > r.Build.LiveBytes/50, "not cold: %d bytes of the store stayed in the page cache",
		r.PageCache.Left)
	return w
}

// replayNote says what was replayed.
func replayNote(k *keys.Description, lookups int64) string {
	t := k.Replay
	text := fmt.Sprintf("Replay of %d lookups of keys that were found and %d of keys that never were, recorded over "+
		"%s: each kind by itself, in the recorded order, as fast as it goes, at most %d. The store has the %d keys "+
		"that were found, and ", t.Existing, t.Absent, t.Span.Round(time.Millisecond), lookups, k.Present-t.Filled)
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
	var w bench.Remarks
	w.If(t.Unfinished, "the trace has no end: lookups that came after are not in it")
	w.If(t.Dropped > 0, "the trace lacks %d lookups, which its writer was too slow for", t.Dropped)
	w.If(t.Missed > 0, "%d lookups did not find a key that others found: they are replayed as lookups of an "+
		"existing key", t.Missed)
	return w
}
