package engine

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/siftkv/siftkv/kv"
)

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

// siftkvEvents translates the events of a store for f, which may be nil.
func siftkvEvents(f func(Background)) kv.Events {
	if f == nil {
		return kv.Events{}
	}
	tell := func(b Background, took time.Duration) {
		b.Ended = time.Now()
		b.Began = b.Ended.Add(-took)
		f(b)
	}
	return kv.Events{
		Flushed: func(i kv.FlushInfo) { tell(Background{Kind: Flush, Bytes: i.Bytes}, i.Duration) },
		Compacted: func(i kv.CompactionInfo) {
			if !i.Moved {
				tell(Background{Kind: Compaction, Level: i.Level, OutputLevel: i.OutputLevel, Bytes: i.OutputBytes},
					i.Duration)
			}
		},
		Stalled: func(i kv.StallInfo) { tell(Background{Kind: Stall}, i.Duration) },
	}
}

// pebbleEvents translates the events of a Pebble store for f, which may be nil.
// Pebble stalls all writers at once, so that one beginning is remembered at a time.
func pebbleEvents(f func(Background)) *pebble.EventListener {
	if f == nil {
		return nil
	}
	var stalled atomic.Pointer[time.Time]
	tell := func(b Background, took time.Duration) {
		b.Ended = time.Now()
		b.Began = b.Ended.Add(-took)
		f(b)
	}
	return &pebble.EventListener{
		FlushEnd: func(i pebble.FlushInfo) {
			if i.Err == nil && !i.Ingest {
				tell(Background{Kind: Flush, Bytes: sizeOf(i.Output)}, i.TotalDuration)
			}
		},
		CompactionEnd: func(i pebble.CompactionInfo) {
			if i.Err != nil || i.Reason == "move" || len(i.Input) == 0 {
				return
			}
			tell(Background{Kind: Compaction, Level: i.Input[0].Level, OutputLevel: i.Output.Level,
				Bytes: sizeOf(i.Output.Tables)}, i.TotalDuration)
		},
		WriteStallBegin: func(pebble.WriteStallBeginInfo) { stalled.Store(new(time.Now())) },
		WriteStallEnd: func() {
			if began := stalled.Swap(nil); began != nil {
				f(Background{Kind: Stall, Began: *began, Ended: time.Now()})
			}
		},
	}
}

// sizeOf adds up the sizes of tables.
func sizeOf(tables []pebble.TableInfo) int64 {
	sum := int64(0)
	for _, t := range tables {
		sum += int64(t.Size)
	}
	return sum
}
