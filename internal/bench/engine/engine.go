package engine

import "context"

// A Kind says what is asked for in a run of lookups.
type Kind string

// The two kinds of lookups.
const (
	Existing Kind = "existing" // keys that were loaded
	Absent   Kind = "absent"   // keys between them
)

// Kinds lists the kinds in the order they are measured and reported.
var Kinds = []Kind{Existing, Absent}

// A Store holds the keys of one configuration of one engine. Methods are called
// from one goroutine: Put any number of times, Settle once, then the others.
type Store interface {
	// Put writes a key that was not written before; it may be buffered until
	// Settle. It does not keep the slices.
	Put(key, value []byte) error
	// Settle writes out what is buffered, flushes, compacts everything into the
	// last level and waits until no background work is left.
	Settle(ctx context.Context) error
	// Shape describes the settled tree.
	Shape() (Shape, error)
	// NewReader returns a reader for lookups of one kind through one of the
	// store's ways to look keys up. The caller closes it before the store.
	NewReader(access Access, kind Kind) (Reader, error)
	// Close releases the store; its directory stays.
	Close() error
}

// An Access is a way to look keys up.
type Access string

// Ways to look keys up.
const (
	Get      Access = "Get"      // the engine's point lookup
	Iterator Access = "iterator" // one iterator, reused: SeekPrefixGE with last-level filters
)

// A Reader looks keys up. It is used by one goroutine; several may each use one of
// their own at the same time.
type Reader interface {
	// Get appends the value of key to dst if the key is there.
	Get(dst, key []byte) (value []byte, found bool, err error)
	// Counters returns what the lookups of all readers of the store have done so far; two
	// calls are subtracted. Nobody looks anything up meanwhile.
	Counters() (Counters, error)
	// Close releases the reader.
	Close() error
}

// Settings are what every engine of a run has in common.
type Settings struct {
	CacheBytes    int64  `json:"cache_bytes"`    // block cache of each store
	MemtableBytes int64  `json:"memtable_bytes"` // size at which a memtable is flushed
	BlockBytes    int    `json:"block_bytes"`    // data block before compression
	Compression   string `json:"compression"`    // one of Compressions
	Compactions   int    `json:"compactions"`    // concurrent compactions at most
	BatchKeys     int    `json:"batch_keys"`     // keys written per batch while loading

	// Durability is what Set waits for; loads by Put never wait for the disk.
	Durability Durability `json:"durability,omitempty"`
	// Writers is how many goroutines call Set at a time, for engines that gather their
	// writes; 0 is 1.
	Writers int `json:"writers,omitempty"`

	// SiftKVIndexBytes is the size at which SiftKV cuts the index of a file into leaves;
	// 0 is its default, 1 MiB.
	SiftKVIndexBytes int `json:"siftkv_index_bytes,omitempty"`
	// PebbleIndexBytes is the size at which Pebble splits the index of a file in
	// two levels; 0 is its default, the size of a data block.
	PebbleIndexBytes int `json:"pebble_index_bytes"`

	// Background, if set, is told of background work when it has ended, from several
	// goroutines. It returns soon. Engines other than SiftKV and Pebble tell nothing.
	Background func(Background) `json:"-"`
}

// Compressions lists the names that Settings.Compression may have.
var Compressions = []string{"none", "snappy", "zstd"}
