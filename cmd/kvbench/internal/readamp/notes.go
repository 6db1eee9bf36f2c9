package readamp

import (
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// notes says how the numbers of a result are to be read.
func notes(r *Result) []string {
	var n bench.Remarks
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(r.Settings.Engines, name) })
	}
	n.If(true, "Caches: the block cache is warm (a pass of lookups ran before), the operating system's page cache "+
		"holds the files; \"disk\" is a read from the file.")
	n.If(has(PebblePlain, PebbleBloom, PebbleSiftKV), "Pebble's Get does not consult the filters of the last level "+
		"(L6), and a settled tree is all last level: its rows show no filter checks whatever the filter.")
	n.If(has(PebbleIterator), "The row \"pebble iterator\" does consult them: one iterator is reused with "+
		"UseL6Filters and SeekPrefixGE. A store that is written to meanwhile would have to open iterators anew to "+
		"see it.")
	n.If(slices.ContainsFunc(r.Stores, func(s StoreResult) bool { return s.Engine == "pebble" }),
		"Pebble's blocks and bytes include index and filter blocks, which it reads through its block cache; SiftKV's "+
			"are data blocks, since it keeps index and filters in memory. \"-\": not counted by that engine.")
	n.If(has(RocksDBPlain, RocksDBBloom, RocksDBRibbon), "%s", engine.RocksDBNote())
	n.If(slices.Contains(r.Settings.Filters, engine.OracleFilter), "The oracle never errs: no filter can read less. "+
		"The keys of each file are in the memory of kvbench and not counted; its times are those of a hash table.")
	n.If(r.Budget != nil, "Filter budget: a run is a sorted sequence of files, of which a lookup may have to ask one: "+
		"each flush in level 0, and one or (tiered) several of any other level; the sum of rates is over all runs, "+
		"and what an absent key costs in reads where it lies within the bounds of each (probes/op says how many did). "+
		"Predicted: theory; under the budget at the bits that the level's filters take.")
	n.If(true, "ns/op: wall time of a loop per lookup, median of the repetitions (%d). p50 and p99: single lookups, "+
		"each with one clock reading (%d ns here) in it. The row \"null\" is the harness alone.",
		r.Settings.Repetitions, r.TimerNs)
	return n
}
