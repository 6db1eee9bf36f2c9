package engine

import (
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/metrics"
)

// siftkvReader looks keys up with AppendGet.
type siftkvReader struct {
	holdsNothing
	db *kv.DB
}

// Get appends the value of key to dst.
func (r siftkvReader) Get(dst, key []byte) ([]byte, bool, error) {
	value, err := r.db.AppendGet(dst, key)
	if err != nil {
		if err == kv.ErrNotFound || errors.Is(err, kv.ErrNotFound) { //nolint:errorlint // the fast path comes first
			return dst, false, nil
		}
		return dst, false, fmt.Errorf("siftkv: get: %w", err)
	}
	return value, true, nil
}

// Counters translates the store's metrics, level by level.
func (r siftkvReader) Counters() (Counters, error) {
	m := r.db.Metrics()
	c := Counters{Lookups: Count(m.Gets), MemtableAnswers: Count(m.MemtableHits), Total: siftkvTally(m.Lookup())}
	for i := range m.Levels {
		c.Levels = append(c.Levels, siftkvTally(m.Levels[i].Lookup))
	}
	return c, nil
}

// siftkvTally translates the counters of one level. The number of filter checks
// is what the store says it did with files that were neither ruled out before
// nor without a filter, so that the outcomes can be held against it.
func siftkvTally(l metrics.Lookups) Tally {
	probed := l.FilesConsidered - l.RuledOutByBounds - l.RuledOutByRangeTombstone
	return Tally{
		FilesConsidered: Count(l.FilesConsidered),
		OutOfBounds:     Count(l.RuledOutByBounds),
		OutOfRange:      Count(l.RuledOutByRangeTombstone),
		FilterChecks:    Count(probed - l.Unfiltered),
		Negatives:       Count(l.FilterNegatives),
		TruePositives:   Count(l.FilterTruePositives),
		FalsePositives:  Count(l.FilterFalsePositives),
		Remembered:      Count(l.FilterRemembered),
		Unfiltered:      Count(l.Unfiltered),
		IndexLookups:    Count(l.IndexLookups),
		OutOfIndex:      Count(l.RuledOutByIndex),
		BlocksFromCache: Count(l.BlocksFromCache),
		BlocksFromDisk:  Count(l.BlocksFromDisk),
		LeavesFromDisk:  Count(l.IndexLeavesFromDisk),
		BytesFromDisk:   Count(l.BytesFromDisk),
		BytesDecoded:    Count(l.BytesDecoded),
		Answered:        Count(l.Hits),
	}
}

// ShapeOf translates the metrics of a store.
func ShapeOf(m *metrics.Store) Shape {
	var shape Shape
	for i, l := range m.Levels {
		if l.Files == 0 {
			continue
		}
		shape.Levels = append(shape.Levels, LevelShape{
			Level: i, Runs: l.Runs, Files: l.Files, Bytes: l.Bytes, Entries: int64(l.Entries),
			FilterBytes: l.FilterBytes, IndexBytes: l.IndexBytes,
		})
	}
	for _, r := range m.Runs {
		shape.ByRun = append(shape.ByRun, LevelShape{
			Level: r.Level, Runs: 1, Files: r.Files, Bytes: r.Bytes, Entries: int64(r.Entries),
			FilterBytes: r.FilterBytes,
		})
	}
	return shape
}

// siftkvEvents translates the events of a store for f, which may be nil.
func siftkvEvents(f func(Background)) kv.Events {
	if f == nil {
		return kv.Events{}
	}
	return kv.Events{
		Flushed: func(i kv.FlushInfo) { ended(f, Background{Kind: Flush, Bytes: i.Bytes}, i.Duration) },
		Compacted: func(i kv.CompactionInfo) {
			if !i.Moved {
				ended(f, Background{Kind: Compaction, Level: i.Level, OutputLevel: i.OutputLevel, Bytes: i.OutputBytes},
					i.Duration)
			}
		},
		Stalled: func(i kv.StallInfo) { ended(f, Background{Kind: Stall}, i.Duration) },
	}
}
