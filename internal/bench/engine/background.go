package engine

import "time"

// Background is a piece of work that a store did by itself, or a wait for it.
type Background struct {
	Kind        BackgroundKind
	Began       time.Time
	Ended       time.Time
	Level       int   // the upper input level of a compaction
	OutputLevel int   // of a compaction
	Bytes       int64 // written to sorted files
}

// A BackgroundKind is a kind of background work.
type BackgroundKind string

// Kinds of background work.
const (
	Flush      BackgroundKind = "flush"      // memtables are written to level 0
	Compaction BackgroundKind = "compaction" // files are merged; those that only change their level do not count
	Stall      BackgroundKind = "stall"      // writes wait for one of the others
)

// ended tells f of work that has ended just now.
func ended(f func(Background), b Background, took time.Duration) {
	b.Ended = time.Now()
	b.Began = b.Ended.Add(-took)
	f(b)
}
