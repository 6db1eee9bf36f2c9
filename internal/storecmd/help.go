package storecmd

// helpTexts are the help texts that are too long for a line, by what stands for them there.
var helpTexts = map[string]string{
	"advise": "What a trace of a store's lookups would cost under other filters and sizes of the cache, and which to " +
		"use.",
	"advise_device": "What a read of a block takes that the cache does not have, such as 90us (default: measured, " +
		"with files in the page cache as they are).",
	"advise_filter": "Filters to try, with spaces or semicolons between them (default: blocked and ribbon from few " +
		"bits to many, some others, and the store's own).",
	"advise_memory": "Memory that filters and cache may take together (default: as much as now).",
	"advise_trace":  "Trace that lookuptrace.Tracer wrote, with keys; by default the directory's name and .trace.",
	"apply": "Give a store other settings, by default those that advise recommends, and rewrite the files whose " +
		"filters are others.",
	"apply_options": "Settings in place of those that advise recommends: lines as kv.ParseOptions takes them, or one " +
		"with semicolons between them. A value with a semicolon in it is quoted as in Go.",
	"apply_rewrite": "Rewrite files whose filters are not those of the settings. Without, they get them as " +
		"compactions rewrite them.",

	"backup": "Write a store as it is now to a file or a pipe, whole or since the last backup; or check a " +
		"backup.",
	"checkpoint": "Keep a store as it is now: a directory as a copy, with links where possible; in an object store " +
		"under a name.",
	"checkpoint_out": "Directory of the copy, not there or empty; in an object store the checkpoint's name.",
	"checkpoints":    "List the checkpoints of a store in an object store: when they were made, what they have.",
	"clone": "Make a branch of a store in an object store: from now on, or from a checkpoint, it goes its own " +
		"way.",
	"compression": "Compression of new files: none, snappy or zstd; by default as the store was last opened, or " +
		"snappy.",
	"link":          "Link the files into the store in place of copying them. They must not be written to again.",
	"dump_blob":     "Print a blob file: every value in it, with its key, past damage.",
	"dump_manifest": "Print a manifest: every version edit, past damage.",
	"dump_sstable":  "Print a sorted file: properties and every entry, past damage.",
	"stats_html": "Also write a page with the store as a picture to FILE; - prints it in place of the text. Filters " +
		"are probed as by --files.",
	"stats_key": "Show what a lookup of KEY passes, on the page.",
	"stats_files": "Also list the sorted files: blocks, index, filter, and the share of random hashes that the " +
		"filter lets pass.",
	"store": "Directory of the store, or its URL: dir://PATH or s3://BUCKET/PREFIX, and ?branch=NAME or " +
		"?checkpoint=NAME.",
	"copy_about": "Copy a store as it is now: from a directory or an object store to another, beside its " +
		"writer.",
	"copy_to": "Where to: a directory that is not there or empty, or an object store that has no store yet.",
	"copy_skip": "Leave out the check of the copy: all files are read back, and compared by their XXH64 with what " +
		"was read of the source.",
	"explain": "What a lookup of a key does: files considered, filters asked, blocks read.",
	"filter": "Filter of new files, by default as the store was last opened: compact rewrites files that have " +
		"another one.",
	"force": "Overwrite OUT, what is left of a backup to it that broke off, and a file that is no mark.",
	"from": "Backups, in the order in which they were made; - is standard input. A file may hold several, one " +
		"after the other.",
	"json": "Print JSON: one object, or one object per line. An error is an object on standard error.",
	"key_format": "Keys and values on the command line and in the output: text, hex or base64. Text that cannot be " +
		"printed is quoted as in Go; an argument that begins with a double quote is read so.",
	"lost": "List the lost values of blob files in FILE, which must not be there: a line of JSON for each. The " +
		"report names the first ten thousand.",
	"mark": "Keep the mark for the next backup in FILE, by default OUT.mark. A mark that is there is " +
		"replaced.",
	"out": "Write the repaired store to DIR, and leave the original as it is. By default it is repaired in " +
		"place, and originals that it does without are moved to its directory lost.",
	"since": "Leave out what the backups up to the mark in this file hold. By default the backup is a full " +
		"one.",
	"verify": "Make no backup: check every byte of the one in FILE (- is standard input). With --mark, its mark " +
		"is kept.",
}

// examples are examples of each command. Those of the program are first steps.
var examples = map[string]string{
	"": "siftkv demo DIR                   # a store to try the rest on\n" +
		"siftkv scan DIR --prefix user/\n" +
		"siftkv stats DIR --html store.html",
	"get":             "siftkv get DIR user/17\nsiftkv get DIR photo/3 --raw > photo.jpg",
	"put":             "siftkv put DIR user/17 Ada --create\nsiftkv put DIR photo/3 --from photo.jpg",
	"delete":          "siftkv delete DIR user/17\nsiftkv delete DIR user/ --to user0",
	"scan":            "siftkv scan DIR --prefix user/ --limit 20\nsiftkv scan DIR --reverse --keys-only --json",
	"explain":         "siftkv explain DIR user/17",
	"stats":           "siftkv stats DIR --files\nsiftkv stats DIR --html store.html --key user/17",
	"verify":          "siftkv verify DIR",
	"repair":          "siftkv repair DIR --dry-run\nsiftkv repair DIR --out DIR2",
	"copy":            "siftkv copy DIR DIR2\nsiftkv copy DIR dir://OBJECTS",
	"checkpoint":      "siftkv checkpoint DIR DIR2\nsiftkv checkpoint dir://OBJECTS monday",
	"backup":          "siftkv backup DIR mon.bak\nsiftkv backup DIR tue.bak --since mon.bak.mark",
	"restore":         "siftkv restore DIR2 mon.bak tue.bak --verify",
	"ingest":          "siftkv ingest DIR part-1.sst part-2.sst --create",
	"compact":         "siftkv compact DIR\nsiftkv compact DIR --lower user/ --upper user0 --filter ribbon:10",
	"advise":          "siftkv advise DIR app.trace --memory 256MiB",
	"apply":           "siftkv apply DIR app.trace --dry-run\nsiftkv apply DIR --options 'Filter = ribbon:8'",
	"demo":            "siftkv demo DIR",
	"checkpoints":     "siftkv checkpoints dir://OBJECTS",
	"drop-checkpoint": "siftkv drop-checkpoint dir://OBJECTS monday",
	"clone":           "siftkv clone dir://OBJECTS trial --checkpoint monday",
	"branches":        "siftkv branches dir://OBJECTS",
	"drop-branch":     "siftkv drop-branch dir://OBJECTS trial",
	"gc":              "siftkv gc dir://OBJECTS",
	"dump-sstable":    "siftkv dump-sstable DIR/000012.sst --no-entries",
	"dump-blob":       "siftkv dump-blob DIR/000014.blob --values",
	"dump-wal":        "siftkv dump-wal DIR/000018.wal --json",
	"dump-manifest":   "siftkv dump-manifest DIR/MANIFEST-000016",
}
