package main

import (
	"context"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/bench/readamp"
	"github.com/siftkv/siftkv/internal/bench/report"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/kv"
)

// readampCommand is the command line of kvbench readamp.
type readampCommand struct {
	Keys      string   `default:"1000000" placeholder:"N|FILE" help:"A number of generated keys (default ${default}), or a file with one key per line, plain or gzip; half of its lines are loaded, the other half asked for in vain. Example: --keys /usr/share/dict/words. A file named like a number: ./1000."`
	KeySize   int      `default:"16" placeholder:"BYTES" help:"Bytes of a generated key (default ${default})."`
	ValueSize int      `default:"100" placeholder:"BYTES" help:"Bytes of a value, half compressible (default ${default})."`
	Filters   []string `default:"none;bloom:10;blocked:10;cuckoo:12;oracle" sep:"none" placeholder:"SPECS" help:"Filters of SiftKV, one row each (default ${default}); oracle never errs, and none and it bracket the others. Separate by spaces or semicolons, or repeat the flag; a spec may contain commas. Example: --filters 'none blocked:10 cuckoo:12,4'."`
	Engines   []string `default:"${engines}" placeholder:"NAMES" help:"Engines to measure, separated by commas (default all): siftkv; pebble (no filter); pebble-bloom (its own, 10 bits); pebble-siftkv (our blocked:10 in Pebble); pebble-iterator (own filter, reused iterator that consults last-level filters); rocksdb (no filter), rocksdb-bloom, rocksdb-ribbon (if built with the tag rocksdb). Example: --engines siftkv,pebble-bloom."`
	Budget    string   `default:"bloom:10" placeholder:"SPEC" help:"Filter of the comparison of equal bits for all keys with a filter budget spread over the levels, on trees of SiftKV (default ${default}); none leaves it out."`
	Compact   string   `name:"compaction" default:"${compaction}" placeholder:"NAME" help:"Compaction of SiftKV: ${compactions} (default ${default}). It shapes the trees of the comparison with a filter budget: tiered and lazy-leveled ones have several sorted runs in a level. Rows are of settled stores, which have one run whatever the compaction."`
	Lookups   int      `default:"40000" placeholder:"N" help:"Timed lookups of existing and of absent keys, each, per row and repetition (default ${default})."`
	Reps      int      `default:"5" placeholder:"N" help:"Repetitions; times are their median (default ${default})."`
	Seed      uint64   `default:"1" placeholder:"N" help:"Seed of keys, values and all random orders (default ${default}). The same seed gives the same keys and the same lookups."`

	Cache       bench.Size `default:"64MiB" placeholder:"SIZE" help:"Block cache of each store (default ${default}). Example: --cache 8MiB."`
	Memtable    bench.Size `default:"16MiB" placeholder:"SIZE" help:"Memtable of each store (default ${default})."`
	BlockSize   bench.Size `default:"4096" placeholder:"SIZE" help:"Data block before compression (default ${default} bytes)."`
	Compression string     `default:"snappy" placeholder:"NAME" help:"Compression of blocks: none, snappy or zstd (default ${default})."`
	Compactions int        `default:"2" placeholder:"N" help:"Concurrent compactions at most, in each store (default ${default})."`

	SiftKVIndexBlock bench.Size `name:"siftkv-index-block" default:"0" placeholder:"SIZE" help:"Size at which SiftKV cuts a file's index into leaves that are read on demand (default 0: its default, 1 MiB)."`
	PebbleIndexBlock bench.Size `default:"0" placeholder:"SIZE" help:"Size at which Pebble splits a file's index in two levels (default 0: Pebble's default, the size of a data block; CockroachDB uses 256KiB)."`

	Dir      string     `placeholder:"DIR" help:"Where to make the temporary stores, about 700 MB for the defaults; they are removed at the end (default: the system's temporary directory)."`
	JSON     resultFile `name:"json" placeholder:"FILE" help:"Also write the result with all settings, the environment and every repetition to FILE; - prints it in place of the text."`
	Progress string     `default:"auto" enum:"auto,plain,none" placeholder:"MODE" help:"Progress on standard error: auto (a bar on a terminal, else plain), plain (a line per phase) or none (default ${default})."`
}

// batchKeys is the number of keys per write batch while loading.
const batchKeys = 1000

// Run measures, prints the tables, and writes the JSON file if asked to. Broken
// identities are an error, but only after the result is out.
func (c *readampCommand) Run(ctx context.Context, p *program) error {
	result, err := readamp.Run(ctx, &readamp.Config{
		Keys:      keys.Request{Keys: c.Keys, KeySize: c.KeySize, MaxLen: kv.MaxKeySize, Seed: c.Seed},
		ValueSize: c.ValueSize, Filters: readamp.SplitSpecs(c.Filters), Engines: c.Engines, Budget: c.Budget,
		Compaction: c.Compact,
		Lookups:    c.Lookups, Repetitions: c.Reps, Seed: c.Seed,
		Store: engine.Settings{
			CacheBytes: int64(c.Cache), MemtableBytes: int64(c.Memtable), BlockBytes: int(c.BlockSize),
			Compression: c.Compression, Compactions: c.Compactions, BatchKeys: batchKeys,
			SiftKVIndexBytes: int(c.SiftKVIndexBlock), PebbleIndexBytes: int(c.PebbleIndexBlock),
		},
		Dir: c.Dir, Argv: p.argv, Progress: progress.New(p.stderr, c.Progress), Wrap: p.wrap,
	})
	if err != nil {
		return err
	}
	if err := show(p, report.ReadAmp, result, c.JSON); err != nil {
		return err
	}
	return result.Identities.Err()
}
