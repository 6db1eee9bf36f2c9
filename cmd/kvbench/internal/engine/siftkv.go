package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace"
	"github.com/siftkv/siftkv/sstable"
)

// SiftKV is a store of this project.
type SiftKV struct {
	batched
	db    *kv.DB
	batch *kv.Batch
	sets  *kv.WriteOptions
	*readCounter
}

// usualMemory is the default of kv.Options.FalsePositiveMemory, in bytes.
const usualMemory = 256 << 10

// openSiftKV opens a store as programs have it.
func openSiftKV(dir string, s Settings) (Live, error) {
	policy, err := filterpolicy.Parse(cmp.Or(s.SiftKVFilter, "blocked:10"))
	if err != nil {
		return nil, fmt.Errorf("siftkv: %w", err)
	}
	return OpenSiftKVTree(dir, s, policy, Tree{FilterBudgetBytes: s.SiftKVFilterBudget, Remember: usualMemory})
}

// OpenSiftKVTree opens or creates a store in dir with one filter policy on every level. With
// a budget the policy gives the filters' family, and the level their bits.
func OpenSiftKVTree(dir string, s Settings, policy filterpolicy.Policy, t Tree) (*SiftKV, error) {
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
		SpaceAmplification:       float64(s.SpacePercent) / 100,
		MaxConcurrentCompactions: s.Compactions,
		Events:                   siftkvEvents(s.Background),
	}
	if t.BaseLevelBytes > 0 && s.SpacePercent == 0 {
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
	reads := newReadCounter(&s)
	reads.count(o)
	db, err := kv.Open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("siftkv: open %s: %w", dir, err)
	}
	store := &SiftKV{db: db, batch: db.NewBatch(), sets: kv.Async, readCounter: reads}
	switch s.Durability {
	case WithOS:
		store.sets = kv.NoSync
	case Durable:
		store.sets = kv.Sync
	}
	store.batched = batched{perKey: s.BatchKeys, add: store.batch.Set, write: store.writeBatch}
	return store, nil
}

// siftkvSeparation sets from which length on values are separated, if any are.
func siftkvSeparation(o *kv.Options, s *Settings) {
	switch {
	case s.SeparateFrom > 0:
		o.SeparateFrom, o.BlobSpace, o.SeparateAtCommit = s.SeparateFrom, s.BlobSpace, s.AtCommit
	case s.Inline:
		o.SeparateFrom = -1
	}
}

// writeBatch writes the batch, and waits for nothing.
func (s *SiftKV) writeBatch() error {
	if err := s.batch.Commit(kv.Async); err != nil {
		return fmt.Errorf("siftkv: commit: %w", err)
	}
	s.batch.Reset()
	return nil
}

var siftkvCompression = map[string]sstable.Compression{
	"none":   sstable.NoCompression,
	"snappy": sstable.Snappy,
	"zstd":   sstable.Zstd,
}

// Settle commits, flushes and compacts everything into the last level.
func (s *SiftKV) Settle(ctx context.Context) error {
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
func (s *SiftKV) Rest(ctx context.Context) error {
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

// Shape reads the metrics.
func (s *SiftKV) Shape() (Shape, error) { return ShapeOf(s.db.Metrics()), nil }

// Set writes one key.
func (s *SiftKV) Set(key, value []byte) error {
	return failed("siftkv: set", s.db.Set(key, value, s.sets))
}

// Memory reads the metrics.
func (s *SiftKV) Memory() Memory {
	m := s.db.Metrics()
	return Memory{Filters: m.FilterMemory, Indexes: m.IndexMemory, Cache: m.CacheBytes, Memtables: m.MemtableBytes}
}

// Scan walks a new iterator.
func (s *SiftKV) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	return s.scan(nil, start, limit, visit)
}

// ScanKeys implements KeyScanner.
func (s *SiftKV) ScanKeys(start []byte, limit int, visit func(key []byte)) error {
	return s.scan(&kv.IterOptions{KeysOnly: true}, start, limit, func(key, _ []byte) { visit(key) })
}

func (s *SiftKV) scan(o *kv.IterOptions, start []byte, limit int, visit func(key, value []byte)) error {
	it, err := s.db.NewIter(o)
	if err != nil {
		return fmt.Errorf("siftkv: new iterator: %w", err)
	}
	n := 0
	for ok := it.SeekGE(start); ok; ok = it.Next() {
		visit(it.Key(), it.Value())
		if n++; n == limit {
			break
		}
	}
	return failed("siftkv: scan", errors.Join(it.Error(), it.Close()))
}

// Usage reads the metrics.
func (s *SiftKV) Usage() Usage {
	m := s.db.Metrics()
	return Usage{
		Logged: Count(m.WALBytes), Flushed: Count(m.FlushBytes + m.Blobs.Committed),
		Compacted:    Count(m.CompactionWrittenBytes),
		FilterMemory: Count(m.FilterMemory), IndexMemory: Count(m.IndexMemory), CacheMemory: Count(m.CacheBytes),
	}
}

// NewReader returns a reader that uses AppendGet, the only access there is.
func (s *SiftKV) NewReader(access Access, _ Kind) (Reader, error) {
	return siftkvReader{db: s.db}, onlyGet("siftkv", access)
}

// Close closes the store.
func (s *SiftKV) Close() error {
	return failed("siftkv: close", s.db.Close())
}

// TraceLookups has lookups written down from now on; nil ends it.
func (s *SiftKV) TraceLookups(t *lookuptrace.Tracer) { s.db.TraceLookups(t) }
