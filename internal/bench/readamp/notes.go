package readamp

import (
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/internal/bench/engine"
)

// notes says how the numbers of a result are to be read.
func notes(r *Result) []string {
	notes := []string{
		"Caches: the block cache is warm (a pass of lookups ran before), the operating system's page cache holds the files; \"disk\" is a read from the file.",
	}
	has := func(name string) bool { return slices.Contains(r.Settings.Engines, name) }
	if has(PebblePlain) || has(PebbleBloom) || has(PebbleSiftKV) {
		notes = append(notes,
			"Pebble's Get does not consult the filters of the last level (L6), and a settled tree is all last level: its rows show no filter checks whatever the filter.")
	}
	if has(PebbleIterator) {
		notes = append(notes,
			"The row \"pebble iterator\" does consult them: one iterator is reused with UseL6Filters and SeekPrefixGE. A store that is written to meanwhile would have to open iterators anew to see it.")
	}
	if len(r.Stores) > 0 && slices.ContainsFunc(r.Stores, func(s StoreResult) bool { return s.Engine == "pebble" }) {
		notes = append(notes,
			"Pebble's blocks and bytes include index and filter blocks, which it reads through its block cache; SiftKV's are data blocks, since it keeps index and filters in memory. \"-\": not counted by that engine.")
	}
	if has(RocksDBPlain) || has(RocksDBBloom) || has(RocksDBRibbon) {
		notes = append(notes,
			engine.RocksDBNote())
	}
	if slices.Contains(r.Settings.Filters, engine.OracleFilter) {
		notes = append(notes,
			"The oracle never errs: no filter can read less. The keys of each file are in the memory of kvbench and not counted; its times are those of a hash table.")
	}
	if r.Budget != nil {
		notes = append(notes,
			"Filter budget: a run is a sorted sequence of files, of which a lookup may have to ask one: each file of level 0, and one or (tiered) several of any other level; the sum of rates is over all runs, and what an absent key costs in reads where it lies within the bounds of each (probes/op says how many did). Predicted: theory; under the budget at the bits that the level's filters take.")
	}
	return append(notes, fmt.Sprintf(
		"ns/op: wall time of a loop per lookup, median of the repetitions (%d). p50 and p99: single lookups, each with one clock reading (%d ns here) in it. The row \"null\" is the harness alone.",
		r.Settings.Repetitions, r.TimerNs))
}
