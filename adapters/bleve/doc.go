// Package siftbleve keeps bleve's upsidedown indexes in a SiftKV store.
//
// Importing it registers the store with bleve under [Name]:
//
//	import _ "github.com/siftkv/siftkv/adapters/bleve"
//
//	index, err := bleve.NewUsing("docs.bleve", mapping, upsidedown.Name, "siftkv", nil)
//
// bleve.Open then finds by itself what it needs: the name and the configuration are in the index's metadata.
//
// # Configuration
//
// The map that bleve.NewUsing and bleve.OpenUsing take has these keys; bleve itself sets the first three. A key that is
// not among them, and a value of another type or out of bounds, is an error that matches [ErrConfig] and says what was
// expected. Sizes are bytes, as any type of Go that holds a whole number: after bleve has read them from its metadata
// they are float64.
//
//	path               string  the directory of the store; required, unless in_memory is set
//	create_if_missing  bool    make a store if there is none (true); false: ErrMissing
//	error_if_exists    bool    ErrExists if there is a store (false)
//	read_only          bool    open a store that is there and change nothing (false)
//	in_memory          bool    keep everything in memory and write no file (false); path is then empty
//	nosync             bool    batches survive a crash of the process, not of the machine (false)
//	filter             string  the filters of sorted files, as filterpolicy.Parse has them ("blocked:10")
//	compression        string  of data blocks: none, snappy or zstd (snappy)
//	memory_limit       int     kv.Options.MemoryLimit: memtables, cache, filters and indexes together (no limit)
//	cache_size         int     kv.Options.CacheSize: the cache of blocks (64 MiB); a negative one: none
//	memtable_size      int     kv.Options.MemtableSize (32 MiB)
//
// # What is promised
//
// A batch takes effect whole or not at all, in the order of its operations, and is on stable storage when
// ExecuteBatch returns, unless nosync is set. Several goroutines may execute batches at once. A reader is a snapshot:
// it sees no later batch, and holds none up. Readers and iterators may be closed after the store; their answers are
// then errors.
//
// # Merges
//
// Merge reads nothing: the operand is written as it is, and combined with what is under the key when somebody reads it,
// or a compaction comes by. For that the index's merge operator is wrapped in a [kv.Merger], whose name is the
// operator's after "bleve.1.": the store remembers it, and refuses an operator of another name as long as it
// holds operands.
//
// The operator must not care where a sequence of operands is cut: FullMerge of a value and of two operands is that of
// the first one's result and of the second, or of what PartialMerge makes of both. upsidedown's counts terms, and
// does as long as no count goes below zero, where it stops; counts that the index itself writes never do.
package siftbleve
