package compaction

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/version"
)

// An Input is all that a decision depends on.
type Input struct {
	Options
	Version        *version.Version
	Now            uint64      // microseconds since 1970
	OldestSnapshot base.SeqNum // base.MaxSeqNum without snapshots
	Disk           Disk
	BusyThreads    int    // of Options.MaxConcurrentCompactions
	Idle           *Idle  // nil: the store is not idle
	State          *State // changed by Pick
}

// Disk is what is known about the room on a store's disk.
type Disk struct {
	Free         int64 // bytes; math.MaxInt64: not known
	WithObsolete int64 // Free, and the bytes of files that will be removed
	Full         bool  // something found no room
}

// SeenBySnapshot reports whether a snapshot may need an old version of a key in tables with a largest sequence number.
func (in *Input) SeenBySnapshot(largest base.SeqNum) bool { return in.OldestSnapshot < largest }
