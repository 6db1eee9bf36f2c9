package main

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/ycsb"
)

const description = `A laboratory for reads of log-structured stores: the same lookups on SiftKV and on Pebble, ` +
	`every answer checked, every read counted.

Exit status: 0 ok, 1 I/O or internal error, 2 usage, 3 wrong answer or counters that do not add up, ` +
	`4 a threshold is passed, 5 some cells failed, 130 interrupted.`

// vars returns the words that tags of flags refer to.
func vars() kong.Vars {
	return kong.Vars{
		"version": environ.Version(), "compressions": strings.Join(bench.Compressions, ", "),
		"objectfilters": objectFilters, "room": "", "tmp": " (default: the system's temporary directory)",
		"workloads": strings.Join(compare.Workloads(), ","), "five": readampFilters,
		"compactions": list(engine.CompactionStyles), "style": engine.CompactionStyles[0],
	}
}

func list(names []string) string { return strings.Join(names, ", ") }

// helps returns the help texts by the name of the flag, or of the command and the flag.
func helps() map[string]string {
	lists := strings.NewReplacer(
		"${workloadlist}", list(compare.Workloads()), "${readampengines}", list(engineWords()),
		"${compared}", list(compared), "${largeengines}", list(compare.LargeEngines()),
		"${peers}", list(engine.Peers()), "${ycsbengines}", list(ycsb.Engines()),
		"${usualvariant}", compare.UsualVariant,
		"${coldvariants}", strings.Join(coldVariants, " "), "${families}", families, "${rangefamilies}", rangeFamilies)
	texts := map[string]string{}
	for _, helps := range []map[string]string{sharedHelps, objectsHelps, aboutHelps, cellsHelps, readampHelps,
		compareHelps, scaleHelps, ycsbHelps, filtersHelps, reportHelps} {
		for name, text := range helps {
			texts[name] = lists.Replace(text)
		}
	}
	return texts
}

// sharedHelps are the help texts of flags that several commands have.
var sharedHelps = map[string]string{
	"progress": "Progress on standard error: auto (a bar on a terminal, else plain), plain (a line per phase) " +
		"or none.",
	"valuesize": "Bytes of a value, half of which compress (default 100).",
	"seed":      "Seed of keys, values and all random orders: the same seed, the same lookups (default 1).",
	"json": "Also write the result, with settings and environment where it has them, to FILE; - prints it in " +
		"place of the text.",
	"csv": "Also write the result as CSV, a line for each number, to FILE; - prints it in place of the " +
		"text.",
	"seconds":        "Seconds of each workload or kind of lookup, engine and repetition (default 0.5).",
	"block":          "Data block before compression (default 4096 bytes).",
	"maxcompactions": "Concurrent compactions at most, in each store (default 2).",
}

// objectsHelps are those of objects.
var objectsHelps = map[string]string{
	"objects_filter": "Filters, a store each (default ${objectfilters}). The first that is not none is that of the " +
		"operations that are no lookups. Separate by spaces or semicolons, or repeat the flag.",
	"objects_cache": "Sizes of the block cache, 0 for none (default 0,1MiB,64MiB): lookups are measured with each.",
	"objects_memory": "Memory limit of the lookups without enough memory for all filters (default 4MiB); 0 leaves " +
		"them out.",
	"objects_young": "Files in level 0 of the second shape, each of a hundredth of the keys (default 16).",
	"objects_lookups": "Lookups of each kind, per row (default 5000). Of absent keys there are up to 40 times as " +
		"many, until they have cost as many requests.",
	"objects_delay": "Delay of each request of operations that are no lookups, by which round trips are counted " +
		"(default 10ms).",
	"objects_putprice": "Price of 1,000 PUT or LIST (default 0.005).",
	"objects_s3": "The object store is a part of a bucket that nobody else uses, and that is empty afterwards: " +
		"s3://bucket/prefix?region=...&endpoint=.... A kvbench that is built with the tag s3 has this.",
}

// aboutHelps say what commands do.
var aboutHelps = map[string]string{
	"objects_about": "A store in an object store: requests, bytes and dollars per lookup, scan and write, by filter " +
		"and cache.",
	"run_about":     "One experiment: an engine, a filter, a tree, a cache and a workload.",
	"sweep_about":   "A matrix of experiments, from flags or a file; resumable.",
	"diff_about":    "Two sets of results: counters exactly, times by a rank test.",
	"report_about":  "Results as tables, CSV, benchstat text, or one HTML page with charts.",
	"trace_about":   "Lookup traces of applications: what is in one, and replays on any engine and filter.",
	"env_about":     "The machine and the program, with warnings about what makes times less trustworthy.",
	"readamp_about": "What a lookup costs, by engine and filter: files, filter checks, blocks, bytes, time.",
	"compare_about": "How fast SiftKV is beside Pebble, Badger, goleveldb and bbolt: reads, scans, loads and " +
		"writes.",
	"ycsb_about":  "YCSB A to F and reads of absent keys, in a closed loop or at a rate.",
	"scale_about": "How the cost of a lookup and the memory per key grow from 300,000 keys on.",
	"filters_about": "Filter families on their own, beside other libraries: bits per key, false positives, build " +
		"and probe times.",
}

// cellsHelps are those of run and sweep: the settings of cells.
var cellsHelps = map[string]string{
	"cells_engine": "Engines: siftkv (default), pebble, pebble-iterator (one iterator that consults last-level " +
		"filters), badger, goleveldb, bbolt (times only), rocksdb and lmdb (if built with these tags; lmdb: " +
		"times only), null (what the harness costs).",
	"cells_filter": "Filters (default blocked:10), separated by spaces or semicolons: none; oracle (never " +
		"errs); a filter of this project, such as bloom:10 or cuckoo:12,4; own:10 (the engine's own Bloom " +
		"filter, 10 bits per key); of rocksdb bloom:10 and ribbon:10.",
	"cells_range": "Range filters of SiftKV: none (default), cut:4 and others, oracle, each with +last for the last " +
		"level too; or prefix:fixed:8, filters of prefixes.",
	"cells_scan": "Scans after the lookups: none (default), 0 or 0:WIDTH (empty ranges, WIDTH mean distances of two " +
		"keys wide), behind (just behind a key), or a number of entries.",
	"cells_budget": "Filter memory: uniform (default: every key has the bits that the filter names) or spread " +
		"(as many bits in all, spread over the levels so that lookups read least).",
	"cells_index": "Size at which siftkv and pebble split a file's index in two levels, of which the lower is " +
		"read on demand (default 0: their defaults, 1 MiB and the size of a data block). Example: --index " +
		"4KiB,1MiB.",
	"cells_shape": "Tree: settled (default: all in one level), grown (several levels, as a store in use has " +
		"them), young:N (settled, under N young files), overwritten:N (every key written N times more, at random, " +
		"and left as the store has it then).",
	"cells_values": "What values are: half (default: half compressible) or random (nothing compresses them).",
	"cells_separate": "Length from which on values are separated from keys: 0 (default: none do) or a size, in " +
		"siftkv, pebble, badger and rocksdb. Example: --value-size 16384 --separate-from 4KiB.",
	"cells_atcommit": "Whether siftkv separates values when it commits them: no (default: when memtables are " +
		"flushed) or yes, with separate-from.",
	"cells_blobspace": "What files of values may take, of the values that are there (default 1.5), with " +
		"separate-from. Example: --blob-space 1.3.",
	"cells_keys": "Numbers of generated keys (default 1000000), or files with one key per line, see readamp, " +
		"or with a lookup trace, see trace.",
	"cells_fill": "Keys that are in the store beside those of a trace, look like them, and are never looked up " +
		"(default 0).",
	"cells_workload": "Which keys are asked for: uniform (default), zipfian, zipfian:SKEW, replay (what the " +
		"trace given as --keys asked for).",
	"cells_pace": "Of workload replay: none (default: as fast as it goes), or lookups with the recorded " +
		"intervals at so many times the speed, such as 1 or 10; latency counts from when a lookup was due.",
	"cells_state": "Caches: warm (default: after a pass of lookups) or cold (the store is reopened and its " +
		"files are dropped from the page cache before each loop).",
	"cells_threads": "Workers that look keys up at the same time, and share the lookups (default 1).",
	"cells_lookups": "Timed lookups of existing and of absent keys, each, per repetition, by all workers " +
		"together (default 40000).",
	"sweep_spec": "Specification, YAML or JSON. Settings given by flags replace those of the file.",
	"sweep_out": "Directory of the results, one file per cell (default results). Cells that are there already " +
		"are kept.",
}

// readampHelps are those of readamp.
var readampHelps = map[string]string{
	"readamp_engine": "Engines to measure, separated by commas (default all), with the filter after a slash, " +
		"as run has them: ${readampengines}. siftkv has the filters of --filter. Example: --engine " +
		"siftkv,pebble/own:10.",
	"readamp_filter": "Filters of SiftKV, one row each (default ${five}); oracle never errs, and " +
		"none and it bracket the others. Separate by spaces or semicolons, or repeat the flag. Example: " +
		"--filter 'none blocked:10 cuckoo:12,4'.",
	"readamp_keys": "A number of generated keys (default 1000000), or a file with one key per line, plain or " +
		"gzip; half of its lines are loaded, the other half asked for in vain. Example: --keys " +
		"/usr/share/dict/words. A file named like a number: ./1000.",
	"readamp_budget": "Filter of the comparison of equal bits for all keys with a filter budget spread over " +
		"the levels, on trees of SiftKV (default bloom:10); none skips it.",
	"readamp_compaction": "Compaction of SiftKV: ${compactions} (default ${style}). It shapes the trees of the " +
		"comparison with a filter budget: tiered and lazy-leveled ones have several sorted runs in a level. " +
		"Rows are of settled stores, which have one run whatever the compaction.",
	"readamp_lookups": "Timed lookups of existing and of absent keys, each, per row and repetition (default " +
		"40000).",
	"siftkvindex": "Size at which SiftKV cuts a file's index into leaves that are read on demand " +
		"(default 0: its default, 1 MiB).",
	"pebbleindex": "Size at which Pebble splits a file's index in two levels (default 0: Pebble's " +
		"default, the size of a data block; CockroachDB uses 256KiB).",
}

// compareHelps are those of compare.
var compareHelps = map[string]string{
	"compare_engine": "Engines, each in a process of its own (default ${compared}; with workloads of large values " +
		"alone ${largeengines}); the first is compared with each other. Also: pebble-iterator (lookups by one " +
		"iterator with last-level filters), rocksdb, rocksdb-blobs and lmdb (if built with the tags rocksdb and lmdb).",
	"compare_largevalues": "What large values are: random (default; nothing compresses them) or half (half " +
		"compressible).",
	"compare_largedata": "Keys and values of a store with large values (default 256MiB). A store may take " +
		"several times as much.",
	"compare_minutes": "Minutes of the constant overwrites of large-churn, for each engine (default 0.5).",
	"compare_separate": "Length from which on values are separated in siftkv-separated, pebble-separated, " +
		"badger-log and rocksdb-blobs (default 4KiB).",
	"compare_blobspace": "What files of values may take in these, of the values that are there (default 1.5); " +
		"kv.Options.BlobSpace of SiftKV, for the others the share of garbage that goes with it.",
	"compare_loads": "Repetitions of the load, and of workloads with stores of their own (default 1); bbolt has " +
		"one.",
	"compare_workload": "Workloads (default all): ${workloadlist}. Example: --workload absent,zipf.",
	"compare_reps": "Repetitions of each workload but the load (default 5): every engine in turn, in another " +
		"order each time.",
	"compare_cache": "Block cache of each store (default 64MiB); workloads that say otherwise have a tenth or " +
		"twice the data.",
	"compare_compression": "Compressions (default snappy,none); bbolt has none. Workloads that write run with " +
		"the first.",
}

// scaleHelps are those of scale.
var scaleHelps = map[string]string{
	"scale_engine": "Engines (default siftkv, with --cold and --procs siftkv,pebble), of: ${peers}.",
	"scale_variant": "With --cold: what siftkv is measured with, separated by spaces: ${usualvariant}, a filter such " +
		"as ribbon:8, budget:BITS (a filter budget of so many bits per key), index:SIZE (larger indexes are cut into " +
		"leaves), or several joined with + (default '${coldvariants}'). The first is measured with every number of " +
		"keys, the others with the most.",
	"scale_keys": "The most keys (default 10000000; with --procs 1000000, one store): stores of 300,000, 1, 3, 10, " +
		"30 and 100 million keys up to this many are made one after the other. Example: --keys 30000000 (about " +
		"5 GB of disk, 20 minutes).",
	"scale_procs": "Many goroutines under these numbers of processors (GOMAXPROCS): throughput, processor time and " +
		"waits for locks of lookups and writes, with everything cached. Example: --procs 1,2,4,8,16 (10 minutes).",
	"scale_goroutines": "With --procs: numbers of goroutines (default 1,8,64,1024).",
	"scale_cold": "Stores that are larger than memory: what lookups read from the device, with nothing in the page " +
		"cache, under a limit of memory. Numbers of keys are then --keys and, before it, a tenth and a hundredth. " +
		"Example: --cold --keys 100000000 (25 GB of disk, an hour or two).",
	"scale_memory":     "With --cold: memory limit of each store (default 512MiB).",
	"scale_lookups":    "With --cold: lookups of each kind that are timed (default 50000).",
	"scale_cacheshare": "Block cache as a part of the data, the same for every number of keys (default 0.1).",
}

// ycsbHelps are those of ycsb.
var ycsbHelps = map[string]string{
	"ycsb_engine": "Engines (default siftkv,pebble), of: ${ycsbengines}.",
	"ycsb_workload": "Workloads, in this order on one store per engine (default a,b,c,d,e,f,absent). absent, " +
		"which YCSB lacks, asks for keys that are not there.",
	"ycsb_rate": "Operations per second of all threads, each due at its own time: latency counts from then, so " +
		"that what a slow operation delays is counted (default 0: a closed loop).",
	"ycsb_html": "Also write a page with operations per second over time, with flushes, compactions and stalls; - " +
		"prints it in place of the table.",
}

// filtersHelps are those of filters.
var filtersHelps = map[string]string{
	"filters_keys": "Numbers of keys, a table each (default 100000,1000000).",
	"filters_probes": "Absent keys to ask for, and lookups to time, per filter (default 1000000); with --ranges, " +
		"empty ranges of each kind (50000).",
	"filters_filter": "Filters of this project (default ${families}). Separate by spaces or semicolons, or " +
		"repeat the flag.",
	"filters_ranges": "Measure filters for ranges of keys: --filter then has range filters (default " +
		"${rangefamilies}).",
	"filters_sets": "With --ranges, sets of keys: random, names, urls, series, or paths of files with a key per line " +
		"(default random,names,urls,series).",
}

// reportHelps are those of report and diff.
var reportHelps = map[string]string{
	"diff_failon": "Changes that end the command with status 4, separated by commas: a metric, > or <, a " +
		"percentage. A time counts only if the test can tell the change from chance. A metric that the second set " +
		"does not have counts as such a change. Example: --fail-on 'ns/op>5%,absent blocks/op>0%'.",
	"format": "What to print: table, markdown, csv (tidy: a line per number), benchstat (input of " +
		"benchstat) or json (an array of the results) (default table).",
	"report_html": "Also write one page with charts, tables and the data, which needs no network, or of one table " +
		"with its chart; - prints it in place of the tables. The page saves charts as SVG files.",
	"report_title":  "Title of the page, and of the chart of one table.",
	"report_metric": "Show these metrics only, such as 'absent blocks/op,store filter-bits/key', in one table.",
	"report_rows": "Settings that make the rows of the table; cells that agree in rows and columns share a " +
		"place, which shows their median, least and greatest (default engine,filter).",
	"report_where": "Only cells with this value of a setting, or one of those given for it.",
	"report_x": "Metric for the axis of the chart, such as 'store filter-bits/key' (default: the columns, if " +
		"they are numbers).",
}
