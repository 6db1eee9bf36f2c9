package report

import (
	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// cold is stores that are larger than memory.
var cold = experiment{
	grids: func(r *tidy.Result) []*Grid {
		by := []string{"engine", "tree", "keys"}
		var reads, times []column
		for i, kind := range []string{"absent", "existing"} {
			first := []string{"absent\n", "existing\n"}[i]
			reads = append(reads, column{first + "reads", in(perOne, kind+" reads")},
				column{"bytes", in(perOne, kind+" bytes")},
				column{"device\nbytes", in(perOne, kind+" device-bytes")},
				column{"requests", in(perOne, kind+" requests")})
			micros := func(x float64) string { return figure(x / 1e3) }
			times = append(times, column{first + "p50", in(micros, kind+" p50")},
				column{"p99", in(micros, kind+" p99")}, column{"p99.9", in(micros, kind+" p99.9")})
		}
		millis := func(x float64) string { return figure(1e3 * x) }
		return []*Grid{
			coldLoads(r),
			cellTable(r, "Per lookup: absent keys, then existing ones", 2, by,
				append([]column{{"runs", in(whole, "runs")}}, reads...)...),
			cellTable(r, "Microseconds per lookup: absent keys, then existing ones", 2, by,
				append([]column{{"open ms", in(millis, "open")}}, times...)...),
			cellTable(r, "Memory", 2, by, column{"filter\nbits", in(bits, "filters")},
				column{"index\nbytes", perKey("indexes")}, column{"pinned\nfilters", perKey("filter-memory")},
				column{"pinned\nindexes", perKey("index-memory")}, column{"cache\nMiB", in(mebi, "cache-memory")},
				column{"peak\nMiB", in(mebi, "peak-memory")},
				column{"of it before\nopen, MiB", in(mebi, "base-memory")}),
		}
	},
	notes: []string{
		"load: to the last batch; calm: from then on, until there was nothing left to compact; settle: to have " +
			"everything in one sorted run. written: by all system calls, of load and calm.",
		"reads: calls that read a file, counted between the store and the system; of these and of bytes the store " +
			"knows. device bytes: what the system read for the process, in whole pages. requests: of the device, " +
			"whoever made them.",
		"The store's own memory is warm: as many lookups of each kind came before. The page cache is emptied of " +
			"the store's files before they are opened, and every few hundred lookups.",
		"pebble looks keys up by Get, which does not ask the filters of the last level; pebble-iterator is the " +
			"same store, asked by an iterator that does.",
		"filter bits, index bytes: of the files, per key. pinned: filters and indexes that the store has in " +
			"memory beside its cache, bytes per key; " +
			"Pebble has them in its cache. peak: resident memory of the process.",
	},
}

func coldLoads(r *tidy.Result) *Grid {
	ofData := func(metric string) figures {
		return func(n numbers) string {
			data, _ := n.median("data")
			return in(func(x float64) string { return fixed(x/data, 2) }, metric)(n)
		}
	}
	disk := func(tree string) figures { // of the store in a tree
		return func(n numbers) string {
			data, _ := n.median("data")
			show := in(func(x float64) string { return fixed(x/data, 2) }, "disk")
			return show(numbers{n.Result, n.cell.With("tree", tree)})
		}
	}
	rate := func(n numbers) string {
		load, _ := n.median("load")
		calm, _ := n.median("calm")
		return whole(n.keys() / (load + calm))
	}
	return cellTable(r, "Loads", 1, []string{"engine", "keys"}, column{"load s", in(figure, "load")},
		column{"calm s", in(figure, "calm")}, column{"settle s", in(figure, "settle")}, column{"keys/s", rate},
		column{"CPU s", in(figure, "processor-time")}, column{"written\n/ data", ofData("written")},
		column{"disk\n/ data", disk(compare.TreeCalm)}, column{"settled\n/ data", disk(compare.TreeSettled)},
		column{"at most\n/ data", ofData("peak-disk")}, column{"peak\nMiB", in(mebi, "peak-memory")})
}
