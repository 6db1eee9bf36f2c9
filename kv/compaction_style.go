package kv

import (
	"fmt"
	"slices"
	"strings"
)

// CompactionStyle says how many sorted runs the levels of a store have, which is how it
// trades what a write costs for what a read costs. See docs/readpath.md.
type CompactionStyle uint8

// The kinds of compaction.
const (
	// Leveled keeps every level below level 0 one sorted run: a lookup asks one file
	// of each. Reads and space cost least, writes most.
	Leveled CompactionStyle = iota
	// Tiered lets every level collect Options.RunsPerLevel sorted runs, and merges them into one of the level below.
	// Writes cost least; a lookup asks a file of every run, and filters matter most.
	Tiered
	// LazyLeveled is tiered, except for the last level, which is one sorted run. Writes cost less than in a leveled
	// store and more than in a tiered one. Most of the store's space is as in a leveled one.
	LazyLeveled

	numCompactions
)

var compactionNames = [numCompactions]string{"leveled", "tiered", "lazy-leveled"}

// String returns the name that ParseCompactionStyle reads.
func (c CompactionStyle) String() string {
	if c >= numCompactions {
		return fmt.Sprintf("Compaction(%d)", uint8(c))
	}
	return compactionNames[c]
}

// ParseCompactionStyle returns the kind of compaction with a name: leveled, tiered or lazy-leveled.
func ParseCompactionStyle(name string) (CompactionStyle, error) {
	if i := slices.Index(compactionNames[:], name); i >= 0 {
		return CompactionStyle(i), nil
	}
	return 0, fmt.Errorf("%w: compaction %q: want %s", ErrInvalidOptions, name, strings.Join(compactionNames[:], ", "))
}
