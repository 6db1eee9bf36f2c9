package kv

import "time"

// Events are functions that the store calls when something happens in the
// background. Nil functions are not called. They are called without locks held,
// from several goroutines, some of which hold up writes or flushes until the
// function returns. They should return soon, and may read the store; they must not
// write to it, nor call Flush, Compact, Checkpoint or Close.
type Events struct {
	// Flushed is called when memtables have been written to level 0.
	Flushed func(FlushInfo)
	// Compacted is called when a compaction has ended.
	Compacted func(CompactionInfo)
	// Stalled is called when writes have waited for a flush or for compaction.
	Stalled func(StallInfo)
	// Failed is called when a write to disk has failed and the store takes no more
	// writes; the error is what writers get, and says why.
	Failed func(error)
	// Resumed is called when such a store takes writes again.
	Resumed func(ResumeInfo)
	// Damaged is called when a compaction could not read a file and leaves it alone: until
	// the store is opened again if its bytes are wrong, for a while if the disk does not give
	// them out. The error names it.
	Damaged func(error)
	// RecoveryDropped is called by Open for each place in a log where recovery leaves
	// out writes, or what may have been writes.
	RecoveryDropped func(DroppedInfo)
}

// A ResumeInfo describes how a store came to take writes again.
type ResumeInfo struct {
	Attempts int
	Duration time.Duration // since it failed
}

// A DroppedInfo says what recovery dropped from a log. After a crash, that is what was
// not synced; see RecoveryMode for what else it may be.
type DroppedInfo struct {
	File   string
	Offset int64 // where the writes that were dropped begin; 0: the whole log
	Bytes  int64 // of the log, until the next record that was read
	Reason string
}

// A FlushInfo describes a flush.
type FlushInfo struct {
	Memtables int
	Table     uint64 // file number; 0 if nothing was left to write
	Bytes     int64
	Duration  time.Duration
}

// A CompactionInfo describes a compaction.
type CompactionInfo struct {
	Reason                  string
	Level, OutputLevel      int
	InputFiles, OutputFiles int
	InputBytes, OutputBytes int64
	Moved                   bool // the file changed its level and nothing was rewritten
	Duration                time.Duration
}

// A StallInfo describes a wait of the write path.
type StallInfo struct {
	Reason   string
	Duration time.Duration
}
