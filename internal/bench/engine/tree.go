package engine

import (
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/kv"
)

// A Tree sizes the levels of a store, and says how much memory its filters
// may take. Zero fields mean the store's defaults.
type Tree struct {
	FileBytes      int64 `json:"file_bytes"`       // of a sorted file; twice that in the last level
	BaseLevelBytes int64 `json:"base_level_bytes"` // of the first level below level 0
	// of all filters; 0: every file has what the policy says; SiftKV only
	FilterBudgetBytes int64 `json:"filter_budget_bytes"`

	// YoungFiles is how many files level 0 may hold before they are compacted.
	YoungFiles int `json:"young_files,omitempty"`
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
	if !slices.Contains([]string{"null", "siftkv", "pebble", "pebble-iterator", RocksDBName}, engine) &&
		(t.YoungFiles > 0 || t.BaseLevelBytes > 0) {
		return Unsupported("shape: trees of %s are settled only", engine)
	}
	if engine != "siftkv" && t.Compaction != CompactionStyles[0] {
		return Unsupported("compaction %s: %s has %s only", t.Compaction, engine, CompactionStyles[0])
	}
	return nil
}
