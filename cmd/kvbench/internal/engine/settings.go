package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/kv"
)

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

	// SeparateFrom is the length in bytes from which on values are separated from keys, in
	// SiftKV, Pebble, Badger and RocksDB; 0: in none, but for SiftKV's default without Inline.
	// Engines that are there to have it so take 0 for 4 KiB, and their twins pass it over.
	SeparateFrom int `json:"separate_from,omitempty"`
	// Inline has all values lie beside their keys where SeparateFrom does not say otherwise.
	// Engines that are there to separate values ignore it.
	Inline bool `json:"inline,omitempty"`
	// BlobSpace is what files of values may take, of the values that are there: SiftKV's
	// kv.Options.BlobSpace, and a share of garbage to the others; 0: 1.5.
	BlobSpace float64 `json:"blob_space,omitempty"`

	// AtCommit has SiftKV separate values when it commits them, kv.Options.SeparateAtCommit.
	AtCommit bool `json:"at_commit,omitempty"`

	// PebbleIndexBytes is the size at which Pebble splits the index of a file in
	// two levels; 0 is its default, the size of a data block.
	PebbleIndexBytes int `json:"pebble_index_bytes"`

	// MemoryLimit is what memtables, block cache, filters and indexes may take together; 0:
	// CacheBytes and MemtableBytes, and filters and indexes beside them where the engine
	// keeps these outside of its cache. SiftKV has it as kv.Options.MemoryLimit, which
	// chooses its cache and memtables; Pebble as the size of its cache, which has all of
	// these in it. The others have it divided by WithMemoryLimit.
	MemoryLimit int64 `json:"memory_limit_bytes,omitempty"`

	// SiftKVFilter is the filter of SiftKV's files, and SiftKVFilterBudget what all of them
	// may take, in bytes. Empty and 0 are its defaults.
	SiftKVFilter       string `json:"siftkv_filter,omitempty"`
	SiftKVFilterBudget int64  `json:"siftkv_filter_budget_bytes,omitempty"`

	// SiftKVRange is the range filter of SiftKV's files, see CheckRange; empty is none.
	SiftKVRange string `json:"siftkv_range,omitempty"`

	// Counters gives the store a merge operator, see Adder. It is then opened with it
	// every time.
	Counters bool `json:"counters,omitempty"`
}

// memtables is how many memtables an engine may have beside its cache, the one that is
// written included.
const memtables = 3

// WithMemoryLimit returns the settings with a limit of memory, in bytes: memtables of an
// eighth of it, of 64 MiB at most, and a cache of what three of them leave.
func (s Settings) WithMemoryLimit(limit int64) Settings {
	s.MemoryLimit = limit
	s.MemtableBytes = min(max(limit/8, minMemtable), 64<<20)
	s.CacheBytes = max(limit-memtables*s.MemtableBytes, minCache)
	return s
}

// Compressions lists the names that Settings.Compression may have.
var Compressions = bench.Compressions

// A Durability says what a Set that has returned survives.
type Durability string

// Durabilities, from the weakest on. An engine that lacks one gives the next
// stronger, except that none is stronger than what it can do without waiting for the
// disk.
const (
	Soon    Durability = "soon" // perhaps not the end of the process
	WithOS  Durability = "os"   // the end of the process
	Durable Durability = "disk" // the loss of power
)

// Bounds of the common settings.
const (
	minCache    = 64 << 10 // engines take 0 for their default, and defaults differ
	minMemtable = 64 << 10
	minBlock    = 256
	maxBlock    = 1 << 20

	minBlobSpace    = 1.1
	maxBlobSpace    = 100
	maxSeparateFrom = 1 << 30

	// MaxMemtable bounds Settings.MemtableBytes.
	MaxMemtable = 1 << 30
)

// Check reports the first setting that makes no sense, under the name that the user
// knows it by: "--cache" if the prefix is "--".
func (s *Settings) Check(prefix string) error {
	if err := bench.CheckNames(prefix+"compression", []string{s.Compression}, Compressions); err != nil {
		return err
	}
	if s.BlobSpace != 0 && !(s.BlobSpace >= minBlobSpace && s.BlobSpace <= maxBlobSpace) {
		return bench.Usagef("%sblob-space %v: want %v to %v", prefix, s.BlobSpace, minBlobSpace, maxBlobSpace)
	}
	return cmp.Or(bench.Within(prefix+"separate-from", 0, maxSeparateFrom, s.SeparateFrom),
		bench.Within(prefix+"cache", minCache, 1<<40, s.CacheBytes),
		bench.Within(prefix+"memtable", minMemtable, MaxMemtable, s.MemtableBytes),
		bench.Within(prefix+"block", minBlock, maxBlock, s.BlockBytes),
		bench.Within(prefix+"max-compactions", 1, 64, s.Compactions))
}

// A Tree sizes the levels of a store, and says how much memory its filters
// may take. Zero fields mean the store's defaults.
type Tree struct {
	FileBytes      int64 `json:"file_bytes"`       // of a sorted file; twice that in the last level
	BaseLevelBytes int64 `json:"base_level_bytes"` // of the first level below level 0
	// of all filters; 0: every file has what the policy says; SiftKV only
	FilterBudgetBytes int64 `json:"filter_budget_bytes"`

	// Remember is how much SiftKV has to remember false positives in, kv.Options.FalsePositiveMemory,
	// in bytes; 0: nothing, so that filters are asked the same question any number of times.
	Remember int64 `json:"remember_bytes,omitempty"`

	// YoungFiles is how many files level 0 may hold before they are compacted.
	YoungFiles int `json:"young_files,omitempty"`
	// Overwrites is how often every key is written once more, on average, after the load.
	Overwrites int `json:"overwrites,omitempty"`
	// Compaction is one of CompactionStyles; empty is the first.
	Compaction string `json:"compaction,omitempty"`
}

// CompactionStyles lists the names that Tree.Compaction may have.
var CompactionStyles = []string{kv.Leveled.String(), kv.Tiered.String(), kv.LazyLeveled.String()}

// CheckTree reports a tree that no store of an engine can have.
func CheckTree(engine string, t Tree) error {
	if !slices.Contains(CompactionStyles, t.Compaction) {
		return bench.Usagef("compaction %s: choose from %s", t.Compaction, strings.Join(CompactionStyles, ", "))
	}
	if t.Remember > 0 && engine != "siftkv" {
		return Unsupported("remember: %s has no memory of false positives", engine)
	}
	shapes := slices.ContainsFunc(engines, func(e entry) bool { return e.name == engine && e.shapes })
	if !shapes && (t.YoungFiles > 0 || t.BaseLevelBytes > 0 || t.Overwrites > 0) {
		return Unsupported("shape: trees of %s are settled only", engine)
	}
	if engine != "siftkv" && t.Compaction != CompactionStyles[0] {
		return Unsupported("compaction %s: %s has %s only", t.Compaction, engine, CompactionStyles[0])
	}
	return nil
}
