// Package compaction decides what a store compacts next. Its decisions are functions of an Input, which has the
// store's options, a version, the time, the oldest snapshot, the room on the disk and what runs. It knows no store and
// opens no file: a store makes the Input under its lock, and runs what is decided.
package compaction

import (
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/manifest"
)

// NumLevels is the number of levels.
const NumLevels = manifest.NumLevels

const lastLevel = NumLevels - 1

// A Style says how many sorted runs the levels have.
type Style uint8

// The styles.
const (
	Leveled     Style = iota // every level below level 0 is one run
	Tiered                   // every level has up to Options.RunsPerLevel runs
	LazyLeveled              // tiered, except for the last level, which is one run
)

// Options are those of a store on which decisions depend. kv.Options has the meaning of each.
type Options struct {
	Style                    Style
	RunsPerLevel             int
	SpaceAmplification       float64
	L0CompactionThreshold    int
	L0SlowdownThreshold      int
	L0StopThreshold          int
	MaxConcurrentCompactions int
	MemtableSize             int64
	BaseLevelSize            int64
	TargetFileSize           int64
	BlobSpaceLimit           float64 // kv.Options.BlobSpace
	BlobFileSize             int64   // of new blob files; 0: it depends on what they hold
	RangeSize                int64   // of the ranges of a merge, in bytes; 0: it depends on the threads
	Compression              [NumLevels]compression.Kind
}

// RunsAllowed returns the number of sorted runs at which a level needs a compaction.
func (o *Options) RunsAllowed(level int) int {
	switch {
	case level == 0 && o.Style == Leveled:
		return o.maxRunsInLevel0()
	case level == 0:
		return o.L0CompactionThreshold
	case level == lastLevel && o.Style == LazyLeveled:
		return 2
	}
	return o.RunsPerLevel
}

// worthLast reports whether that many bytes above the last level are worth a merge with it.
func (o *Options) worthLast(above, last int64) bool { return above >= last/int64(o.RunsPerLevel) }

// outweigh reports whether the runs between level 0 and the oldest run must be merged with the oldest.
func (o *Options) outweigh(newer, oldest int64) bool { return newer/int64(o.RunsPerLevel) > oldest }
