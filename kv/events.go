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
	// Failed is called when the store gives up writing; the error says why.
	Failed func(error)
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
