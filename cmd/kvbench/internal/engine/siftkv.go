package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace"
	"github.com/siftkv/siftkv/kv/metrics"
	"github.com/siftkv/siftkv/sstable"
)

type siftkvStore struct {
	batched
	db    *kv.DB
	batch *kv.Batch
	sets  *kv.WriteOptions
}

// usualMemory is the default of kv.Options.FalsePositiveMemory, in bytes.
const usualMemory = 256 << 10

// openSiftKV opens a store as programs have it.
func openSiftKV(dir string, s Settings) (Live, error) {
	policy, err := filterpolicy.Parse(cmp.Or(s.SiftKVFilter, "blocked:10"))
	if err != nil {
		return nil, fmt.Errorf("siftkv: %w", err)
	}
	return openSiftKVTree(dir, s, policy, Tree{FilterBudgetBytes: s.SiftKVFilterBudget, Remember: usualMemory})
}

// openSiftKVTree opens or creates a store in dir with one filter policy on every level. With
// a budget the policy gives the filters' family, and the level their bits.
func openSiftKVTree(dir string, s Settings, policy filterpolicy.Policy, t Tree) (*siftkvStore, error) {
	o := &kv.Options{
		CacheSize:                s.CacheBytes,
		MemtableSize:             s.MemtableBytes,
		BlockSize:                s.BlockBytes,
		IndexPartition:           s.SiftKVIndexBytes,
		Compression:              siftkvCompression[s.Compression],
		Filter:                   policy,
		FilterBudget:             t.FilterBudgetBytes,
		FalsePositiveMemory:      cmp.Or(t.Remember, -1),
		TargetFileSize:           t.FileBytes,
		BaseLevelSize:            t.BaseLevelBytes,
		MaxConcurrentCompactions: s.Compactions,
		IdleCompaction:           -1, // a tree stays as it was loaded, however long it is measured
	}
	if t.BaseLevelBytes > 0 {
		o.SpaceAmplification = 1.1 // levels that differ by ten times, as in the study
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
	siftkvSeparation(o, &s)
	if s.SiftKVRange != "" {
		if err := setRange(o, s.SiftKVRange); err != nil {
			return nil, err
		}
	}
	if s.Counters {
		o.Merger = kv.Int64Add
	}
	if s.MemoryLimit > 0 {
		o.MemoryLimit, o.CacheSize, o.MemtableSize = s.MemoryLimit, 0, 0
	}
	db, err := kv.Open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("siftkv: open %s: %w", dir, err)
	}
	store := newSiftKV(db, s.BatchKeys)
	switch s.Durability {
	case WithOS:
		store.sets = kv.NoSync
	case Durable:
		store.sets = kv.Sync
	}
	return store, nil
}

// newSiftKV returns an open store whose batches have some keys each.
func newSiftKV(db *kv.DB, batchKeys int) *siftkvStore {
	s := &siftkvStore{db: db, batch: db.NewBatch(), sets: kv.Async}
	s.batched = batched{perKey: batchKeys, add: s.batch.Set, reset: s.batch.Reset,
		write: func() error { return failed("siftkv: commit", s.batch.Commit(kv.Async)) }}
	return s
}

func siftkvSeparation(o *kv.Options, s *Settings) {
	switch {
	case s.SeparateFrom > 0:
		o.SeparateFrom, o.BlobSpace, o.SeparateAtCommit = s.SeparateFrom, s.BlobSpace, s.AtCommit
	case s.Inline:
		o.SeparateFrom = -1
	}
}

var siftkvCompression = map[string]sstable.Compression{
	"none":   sstable.NoCompression,
	"snappy": sstable.Snappy,
	"zstd":   sstable.Zstd,
}

func (s *siftkvStore) Settle(ctx context.Context) error {
	if err := s.commit(); err != nil {
		return err
	}
	if err := s.db.Flush(ctx); err != nil {
		return fmt.Errorf("siftkv: flush: %w", err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failed("siftkv: compact", s.db.Compact(ctx, nil, nil))
}

// restPause leaves the processor to the compactions that Rest waits for.
const restPause = 200 * time.Microsecond

// Rest commits, flushes and waits until the store itself finds nothing left to
// compact; unlike Settle it leaves the levels that came of it. What is there then
// depends on what was written between two rests, and not on time, if Compactions
// is 1.
func (s *siftkvStore) Rest(ctx context.Context) error {
	if err := s.commit(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		// A range without keys: Compact flushes, waits for running compactions, finds
		// nothing to merge, and lets the store start what has become due.
		if err := s.db.Compact(ctx, []byte{}, []byte{}); err != nil {
			return fmt.Errorf("siftkv: rest: %w", err)
		}
		if s.db.Metrics().RunningCompactions == 0 {
			return nil
		}
		time.Sleep(restPause)
	}
	return ctx.Err()
}

func (s *siftkvStore) Set(key, value []byte) error {
	return failed("siftkv: set", s.db.Set(key, value, s.sets))
}

func (s *siftkvStore) Delete(key []byte) error {
	return failed("siftkv: delete", s.db.Delete(key, s.sets))
}

func (s *siftkvStore) DeleteRange(start, end []byte) error {
	return failed("siftkv: delete range", s.db.DeleteRange(start, end, s.sets))
}

func (s *siftkvStore) Add(key, counter []byte) error {
	return failed("siftkv: merge", s.db.Merge(key, counter, s.sets))
}

func (s *siftkvStore) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	return s.scan(nil, start, limit, visit)
}

func (s *siftkvStore) ScanKeys(start []byte, limit int, visit func(key []byte)) error {
	return s.scan(&kv.IterOptions{KeysOnly: true}, start, limit, func(key, _ []byte) { visit(key) })
}

func (s *siftkvStore) scan(o *kv.IterOptions, start []byte, limit int, visit func(key, value []byte)) error {
	it, err := s.db.NewIter(o)
	if err != nil {
		return fmt.Errorf("siftkv: new iterator: %w", err)
	}
	more := upTo(limit, visit)
	for ok := it.SeekGE(start); ok && more(it.Key(), it.Value()); ok = it.Next() {
	}
	return failed("siftkv: scan", errors.Join(it.Error(), it.Close()))
}

func (s *siftkvStore) Usage() Usage {
	m := s.db.Metrics()
	return Usage{
		Logged: Count(m.WALBytes), Flushed: Count(m.FlushBytes + m.Blobs.Committed),
		Compacted:    Count(m.CompactionWrittenBytes),
		FilterMemory: Count(m.FilterMemory), IndexMemory: Count(m.IndexMemory), CacheMemory: Count(m.CacheBytes),
	}
}

// NewReader returns a reader that uses AppendGet, the only access there is.
func (s *siftkvStore) NewReader(access Access, _ Kind) (Reader, error) {
	return siftkvReader{db: s.db}, onlyGet("siftkv", access)
}

func (s *siftkvStore) Close() error {
	return failed("siftkv: close", s.db.Close())
}

// TraceLookups has lookups written down from now on; nil ends it.
func (s *siftkvStore) TraceLookups(t *lookuptrace.Tracer) { s.db.TraceLookups(t) }

type siftkvReader struct {
	holdsNothing
	db *kv.DB
}

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

func (s *siftkvStore) Shape() (Shape, error) { return ShapeOf(s.db.Metrics()), nil }

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

// NoRange is a store without range filters.
const NoRange = "none"

const (
	prefixFilter = "prefix:" // filters of prefixes by an extractor of filterpolicy.ParsePrefix
	lastLevel    = "+last"   // range filters in the last level too
)

// CheckRange reports what is wrong with the text of a range filter: none, a spec of filterpolicy.ParseRange, oracle,
// either with "+last" for the files of the last level too, or "prefix:" and an extractor of filterpolicy.ParsePrefix.
func CheckRange(text string) error { return setRange(&kv.Options{}, text) }

// setRange sets the options of a store to a range filter. The oracle has the keys themselves.
func setRange(o *kv.Options, text string) error {
	if name, ok := strings.CutPrefix(text, prefixFilter); ok {
		p, err := filterpolicy.ParsePrefix(name)
		if err != nil {
			return bench.Usagef("range: %w", err)
		}
		o.Prefix = p
		return nil
	}
	spec, all := strings.CutSuffix(text, lastLevel)
	if spec == OracleFilter {
		o.RangeFilter = exactranges.Policy{}
	} else {
		p, err := filterpolicy.ParseRange(spec)
		if err != nil {
			return bench.Usagef("range: %w (or oracle, or prefix:fixed:8)", err)
		}
		o.RangeFilter = p
	}
	o.RangeFilterLastLevel = all
	return nil
}

// A Ranger is a store that scans between two bounds and counts what that costs.
type Ranger interface {
	// ScanBetween calls visit with the entries of [lo, hi) in key order, by an iterator of its own. The slices are
	// visit's until it returns.
	ScanBetween(lo, hi []byte, visit func(key, value []byte)) error
	// Scans returns what scans have done since the store was opened.
	Scans() metrics.Scans
}

func (s *siftkvStore) ScanBetween(lo, hi []byte, visit func(key, value []byte)) error {
	it, err := s.db.NewIter(&kv.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return fmt.Errorf("siftkv: new iterator: %w", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		visit(it.Key(), it.Value())
	}
	return failed("siftkv: scan", errors.Join(it.Error(), it.Close()))
}

func (s *siftkvStore) Scans() metrics.Scans { return s.db.Metrics().Scans() }
