package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// SiftKV is a store of this project.
type SiftKV struct {
	db     *kv.DB
	batch  *kv.Batch
	perKey int // keys per batch
}

// A Tree sizes the levels of a store, and says how much memory its filters
// may take. Zero fields mean the store's defaults.
type Tree struct {
	FileBytes      int64 `json:"file_bytes"`       // of a sorted file; twice that in the last level
	BaseLevelBytes int64 `json:"base_level_bytes"` // of the first level below level 0
	// of all filters; 0: every file has what the policy says; SiftKV only
	FilterBudgetBytes int64 `json:"filter_budget_bytes"`

	// YoungFiles is how many files level 0 may hold before they are compacted.
	YoungFiles int `json:"young_files,omitempty"`
	// Compaction is one of CompactionStyles; empty is the first.
	Compaction string `json:"compaction,omitempty"`
}

// CompactionStyles lists the names that Tree.Compaction may have.
var CompactionStyles = []string{kv.Leveled.String(), kv.Tiered.String(), kv.LazyLeveled.String()}

// OpenSiftKV opens or creates a store in dir with one filter policy on every level.
func OpenSiftKV(dir string, s Settings, policy filterpolicy.Policy) (*SiftKV, error) {
	return OpenSiftKVTree(dir, s, policy, Tree{})
}

// OpenSiftKVTree is OpenSiftKV with levels of chosen sizes. With a budget the policy
// gives the filters' family, and the level their bits.
func OpenSiftKVTree(dir string, s Settings, policy filterpolicy.Policy, t Tree) (*SiftKV, error) {
	o := &kv.Options{
		CacheSize:                s.CacheBytes,
		MemtableSize:             s.MemtableBytes,
		BlockSize:                s.BlockBytes,
		IndexPartition:           s.SiftKVIndexBytes,
		Compression:              siftkvCompression[s.Compression],
		Filter:                   policy,
		FilterBudget:             t.FilterBudgetBytes,
		TargetFileSize:           t.FileBytes,
		BaseLevelSize:            t.BaseLevelBytes,
		MaxConcurrentCompactions: s.Compactions,
		Events:                   siftkvEvents(s.Background),
	}
	if t.Compaction != "" {
		kind, err := kv.ParseCompactionStyle(t.Compaction)
		if err != nil {
			return nil, bench.Usagef("compaction: %w", err)
		}
		o.Compaction = kind
	}
	if t.YoungFiles > 0 {
		o.L0CompactionThreshold = t.YoungFiles + 1
		o.L0SlowdownThreshold, o.L0StopThreshold = t.YoungFiles+2, 2*t.YoungFiles+4
	}
	db, err := kv.Open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("siftkv: open %s: %w", dir, err)
	}
	return &SiftKV{db: db, batch: db.NewBatch(), perKey: max(1, s.BatchKeys)}, nil
}

var siftkvCompression = map[string]sstable.Compression{
	"none":   sstable.NoCompression,
	"snappy": sstable.Snappy,
	"zstd":   sstable.Zstd,
}

// Put adds a key to the current batch.
func (s *SiftKV) Put(key, value []byte) error {
	if err := s.batch.Set(key, value); err != nil {
		return fmt.Errorf("siftkv: set: %w", err)
	}
	if s.batch.Len() < s.perKey {
		return nil
	}
	return s.commit()
}

func (s *SiftKV) commit() error {
	if err := s.batch.Commit(kv.Async); err != nil {
		return fmt.Errorf("siftkv: commit: %w", err)
	}
	s.batch.Reset()
	return nil
}

// Settle commits, flushes and compacts everything into the last level.
func (s *SiftKV) Settle(ctx context.Context) error {
	if err := s.commit(); err != nil {
		return err
	}
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("siftkv: flush: %w", err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := s.db.Compact(nil, nil); err != nil {
		return fmt.Errorf("siftkv: compact: %w", err)
	}
	return nil
}

// Rest commits, flushes and waits until the store itself finds nothing left to
// compact; unlike Settle it leaves the levels that came of it. What is there then
// depends on what was written between two rests, and not on time, if Compactions
// is 1.
func (s *SiftKV) Rest(ctx context.Context) error {
	if err := s.commit(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		// A range without keys: Compact flushes, waits for running compactions, finds
		// nothing to merge, and lets the store start what has become due.
		if err := s.db.Compact([]byte{}, []byte{}); err != nil {
			return fmt.Errorf("siftkv: rest: %w", err)
		}
		if s.db.Metrics().RunningCompactions == 0 {
			return nil
		}
	}
	return ctx.Err()
}

// Shape reads the metrics.
func (s *SiftKV) Shape() (Shape, error) { return ShapeOf(s.db.Metrics()), nil }

// ShapeOf translates the metrics of a store.
func ShapeOf(m *kv.Metrics) Shape {
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

// NewReader returns a reader that uses AppendGet, the only access there is.
func (s *SiftKV) NewReader(access Access, _ Kind) (Reader, error) {
	if access != Get {
		return nil, fmt.Errorf("siftkv: no access named %q", access)
	}
	return siftkvReader{s.db}, nil
}

// Close closes the store.
func (s *SiftKV) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("siftkv: close: %w", err)
	}
	return nil
}

// siftkvReader looks keys up with AppendGet.
type siftkvReader struct{ db *kv.DB }

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
func siftkvTally(l kv.LookupCounters) Tally {
	probed := l.FilesConsidered - l.RuledOutByBounds - l.RuledOutByRangeTombstone
	return Tally{
		FilesConsidered: Count(l.FilesConsidered),
		OutOfBounds:     Count(l.RuledOutByBounds),
		OutOfRange:      Count(l.RuledOutByRangeTombstone),
		FilterChecks:    Count(probed - l.Unfiltered),
		Negatives:       Count(l.FilterNegatives),
		TruePositives:   Count(l.FilterTruePositives),
		FalsePositives:  Count(l.FilterFalsePositives),
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

// Close does nothing: the reader holds nothing.
func (r siftkvReader) Close() error { return nil }
