// Package storeview shows one state of an open store to packages that examine it from outside package kv.
package storeview

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/lookupsample"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/version"
)

// Of returns a view of the present state of a store, a *kv.DB. Package kv sets it. The caller releases the view.
var Of func(db any) (*View, error)

// A View is one state of a store, with the options that apply to it. Its tables stay readable until Release.
type View struct {
	Version *version.Version
	Tables  *tablecache.Cache
	Seq     base.SeqNum           // the last visible write
	Sampler *lookupsample.Sampler // nil: the store keeps no sample of its lookups

	Filters    *filterbudget.Plan
	Compaction *compaction.Options
	Blocks     Blocks

	// Memtables looks a key with the given hash up in the memtables.
	Memtables func(key []byte, hash uint64) (InMemory, error)
	Release   func()
}

// Blocks are the options about data blocks and the memory for them.
type Blocks struct {
	Size         int   // of a new block in bytes
	Cache        int64 // bytes of the block cache; 0: there is none
	Remembered   int64 // bytes for remembered false positives; 0: none
	SharedMemory bool  // a limit or a budget of memory bounds the cache too
}

// InMemory is what the memtables say about a key.
type InMemory struct {
	Answered bool        // they answer a lookup of the key, so it asks no table
	Found    bool        // the answer is a value
	Cover    base.SeqNum // the newest visible range tombstone over the key, in tables too; 0: none
}
