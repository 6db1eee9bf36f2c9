package engine

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Shape reads the properties of every file.
func (p *Pebble) Shape() (Shape, error) {
	levels, err := p.db.SSTables(pebble.WithProperties())
	if err != nil {
		return Shape{}, fmt.Errorf("pebble: sstables: %w", err)
	}
	var shape Shape
	for i, files := range levels {
		l := LevelShape{Level: i, Runs: runs(i, len(files)), Files: len(files)}
		for _, f := range files {
			l.Bytes += int64(f.Size)
			l.Entries += int64(f.Properties.NumEntries)
			l.FilterBytes += int64(f.Properties.FilterSize)
			l.IndexBytes += int64(f.Properties.IndexSize)
		}
		if l.Files > 0 {
			shape.Levels = append(shape.Levels, l)
		}
	}
	return shape, nil
}

// Usage reads the metrics. Pebble keeps filters and indexes in its block cache, among
// other blocks.
func (p *Pebble) Usage() Usage {
	m := p.db.Metrics()
	u := Usage{
		Logged: Count(m.WAL.BytesWritten), FilterMemory: Unknown, IndexMemory: Unknown,
		CacheMemory: Count(m.BlockCache.Size),
	}
	for i := range m.Levels {
		u.Flushed += Count(m.Levels[i].TableBytesFlushed)
		u.Compacted += Count(m.Levels[i].TableBytesCompacted)
	}
	return u
}

// pebbleEvents translates the events of a Pebble store for f, which may be nil.
// Pebble stalls all writers at once, so that one beginning is remembered at a time.
func pebbleEvents(f func(Background)) *pebble.EventListener {
	if f == nil {
		return nil
	}
	var stalled atomic.Pointer[time.Time]
	return &pebble.EventListener{
		FlushEnd: func(i pebble.FlushInfo) {
			if i.Err == nil && !i.Ingest {
				ended(f, Background{Kind: Flush, Bytes: sizeOf(i.Output)}, i.TotalDuration)
			}
		},
		CompactionEnd: func(i pebble.CompactionInfo) {
			if i.Err != nil || i.Reason == "move" || len(i.Input) == 0 {
				return
			}
			ended(f, Background{Kind: Compaction, Level: i.Input[0].Level, OutputLevel: i.Output.Level,
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

// pebbleLog keeps Pebble quiet and remembers the first error it reports from
// the background.
type pebbleLog struct {
	first atomic.Pointer[error]
	fatal io.Writer
}

// Infof drops the message.
func (l *pebbleLog) Infof(string, ...any) {}

// Errorf remembers the first message.
func (l *pebbleLog) Errorf(format string, args ...any) {
	err := fmt.Errorf("pebble: "+format, args...)
	l.first.CompareAndSwap(nil, &err)
}

// Fatalf ends the process, as Pebble requires: its state is no longer safe.
func (l *pebbleLog) Fatalf(format string, args ...any) {
	_, _ = fmt.Fprintf(l.fatal, "kvbench: pebble: "+format+"\n", args...)
	os.Exit(1)
}

func (l *pebbleLog) failure() error {
	if err := l.first.Load(); err != nil {
		return *err
	}
	return nil
}
