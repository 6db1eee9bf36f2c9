package kv

import (
	"time"

	"github.com/siftkv/siftkv/internal/callback"
)

// Events are functions that the store calls when something happens in the background. A nil function is not called. The
// store calls them without holding locks, from several goroutines, some of which hold up writes or flushes until the
// function returns. A function should return soon. It may read the store; it must not write to it, nor call Flush,
// Compact, Checkpoint or Close.
//
// Each call has a goroutine of its own, for which the store waits. A function that panics, or calls runtime.Goexit,
// changes nothing else: the logger gets a message with the stack.
type Events struct {
	// Flushed is called when memtables have been written to level 0.
	Flushed func(FlushInfo)
	// Compacted is called when a compaction has ended.
	Compacted func(CompactionInfo)
	// Stalled is called when writes have waited for a flush or for compaction.
	Stalled func(StallInfo)
	// Failed is called when a write to disk has failed and the store takes no more
	// writes. The error says why; it is the one that writers get.
	Failed func(error)
	// Resumed is called when a store that had failed takes writes again.
	Resumed func(ResumeInfo)
	// Quarantined is called when a compaction could not read a file. Compactions then leave
	// the file alone: until the store is opened again if its bytes are wrong, for a while if
	// the disk returned an error. The error names the file.
	Quarantined func(error)
	// RecoveryDropped is called by Open for each place in a log where recovery drops
	// writes, or bytes that may have been writes.
	RecoveryDropped func(DroppedInfo)
}

// tell calls a function of Events, unless it is nil. The caller holds no lock.
func tell[T any](d *DB, event string, f func(T), info T) {
	if f == nil {
		return
	}
	callback.Log(d.log, callback.Do("Events."+event, func() error {
		f(info)
		return nil
	}))
}

// A ResumeInfo describes how a store came to take writes again.
type ResumeInfo struct {
	Attempts int
	Duration time.Duration // since it failed
}

// A DroppedInfo describes what recovery dropped from a log. After a crash, that is what
// had not been synced; see RecoveryMode for what else it may be.
type DroppedInfo struct {
	File   string
	Offset int64 // where the dropped writes begin; 0: the whole log
	Bytes  int64 // of the log, up to the next record that was read
	Reason string
}

// A FlushInfo describes a flush.
type FlushInfo struct {
	Memtables int
	Table     uint64 // number of the first file; 0 if nothing was left to write
	Files     int    // several if the memtables were large, and threads had nothing else to do
	Bytes     int64  // of all files, blob files included
	BlobFiles int    // that were written for blob values
	BlobBytes int64  // of these
	Duration  time.Duration
}

// A CompactionInfo describes a compaction.
type CompactionInfo struct {
	Reason                  string
	Level, OutputLevel      int
	InputFiles, OutputFiles int   // sorted files
	InputBytes              int64 // of the sorted files
	OutputBytes             int64 // of all files, blob files included
	BlobFiles               int   // that were written
	BlobBytes               int64 // of these
	RelocatedBytes          int64 // of records that were copied into them from other blob files
	Moved                   bool  // the file went to another level and nothing was rewritten
	Duration                time.Duration
}

// A StallInfo describes a wait of the write path.
type StallInfo struct {
	Reason   string
	Duration time.Duration
}
