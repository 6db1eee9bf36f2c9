package objectscmd

import (
	"maps"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/environ"
)

// Vars returns what help texts and defaults of the command, and of a program that has it, refer to.
func Vars() kong.Vars {
	return kong.Vars{
		"version": environ.Version(), "compressions": strings.Join(bench.Compressions, ", "),
		"objectfilters": filters, "room": "", "tmp": " (default: the system's temporary directory)",
	}
}

// Helps returns the help texts of the command, and of a program that has it, by what stands for them in tags.
func Helps() map[string]string { return maps.Clone(helps) }

var helps = map[string]string{
	"progress": "Progress on standard error: auto (a bar on a terminal, else plain), plain (a line per phase) " +
		"or none.",
	"objects_about": "A store in an object store: requests, bytes and dollars per lookup, scan and write, by filter " +
		"and cache.",
	"completion_about": "A script that completes this command line, for bash, zsh or fish.",

	"valuesize": "Bytes of a value, half of which compress (default 100).",
	"seed":      "Seed of keys, values and all random orders: the same seed, the same lookups (default 1).",
	"json": "Also write the result, with settings and environment where it has them, to FILE; - prints it in " +
		"place of the text.",

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
		"s3://bucket/prefix?region=...&endpoint=.... The kvbench of " +
		"github.com/siftkv/siftkv/objstore/s3/cmd/kvbench has this.",
}
