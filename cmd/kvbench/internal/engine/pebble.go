package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// pebbleStore is a store of github.com/cockroachdb/pebble/v2. What is not set here is
// Pebble's default, with its bytewise comparer, whose Split is the whole key.
type pebbleStore struct {
	batched
	db    *pebble.DB
	batch *pebble.Batch
	sets  *pebble.WriteOptions
	log   *pebbleLog

	iterators []*pebble.Iterator // of the readers that are open
}

// openPebble opens a store as programs have it.
func openPebble(dir string, s Settings) (Live, error) {
	return openPebbleTree(dir, s, bloom.FilterPolicy(10), Tree{})
}

// openPebbleTree opens or creates a store in dir with one filter policy on every level;
// nil means no filter.
func openPebbleTree(dir string, s Settings, policy pebble.FilterPolicy, t Tree) (*pebbleStore, error) {
	log := &pebbleLog{fatal: os.Stderr}
	db, err := pebble.Open(dir, pebbleOptions(s, policy, t, log))
	if err != nil {
		return nil, fmt.Errorf("pebble: open %s: %w", dir, err)
	}
	p := &pebbleStore{db: db, batch: db.NewBatch(), sets: pebble.NoSync, log: log}
	if s.Durability == Durable {
		p.sets = pebble.Sync
	}
	p.batched = batched{perKey: s.BatchKeys, reset: p.batch.Reset,
		write: func() error { return failed("pebble: commit", p.batch.Commit(pebble.NoSync)) },
		add:   func(key, value []byte) error { return p.batch.Set(key, value, nil) }}
	return p, nil
}

// pebbleOptions maps the common settings. Pebble reads its own compression
// names; the settings were checked before.
func pebbleOptions(s Settings, policy pebble.FilterPolicy, t Tree, log pebble.Logger) *pebble.Options {
	compression := map[string]*sstable.CompressionProfile{
		"none":   sstable.NoCompression,
		"snappy": sstable.SnappyCompression,
		"zstd":   sstable.ZstdCompression,
	}[s.Compression]
	o := &pebble.Options{
		CacheSize:                  cmp.Or(s.MemoryLimit, s.CacheBytes),
		MemTableSize:               uint64(s.MemtableBytes),
		FormatMajorVersion:         pebble.FormatNewest,
		CompactionConcurrencyRange: func() (int, int) { return 1, s.Compactions },
		Logger:                     log,
	}
	if s.Counters {
		o.Merger = pebbleCounters64
	}
	if t.YoungFiles > 0 {
		// Pebble counts each layer of overlapping files of level 0 twice.
		o.L0CompactionThreshold, o.L0CompactionFileThreshold = 2*t.YoungFiles+1, 2*t.YoungFiles+1
		o.L0StopWritesThreshold = 2*t.YoungFiles + 4
	}
	if s.SeparateFrom > 0 {
		o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy { return pebbleSeparation(&s) }
	}
	o.LBaseMaxBytes = t.BaseLevelBytes
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] = t.FileBytes
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize = s.BlockBytes
		o.Levels[i].IndexBlockSize = s.PebbleIndexBytes
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return compression }
		o.Levels[i].FilterPolicy = policy
	}
	return o
}

// Of Pebble's value separation: the depth is that of its own benchmarks. Programs let files rest for
// minutes, which is as long as all of what is measured here.
const (
	pebbleDepth   = 10
	pebbleBlobAge = time.Second
)

func pebbleSeparation(s *Settings) pebble.ValueSeparationPolicy {
	return pebble.ValueSeparationPolicy{Enabled: true, MinimumSize: s.SeparateFrom, MaxBlobReferenceDepth: pebbleDepth,
		RewriteMinimumAge: pebbleBlobAge, TargetGarbageRatio: s.garbageShare()}
}

func (p *pebbleStore) Settle(ctx context.Context) error {
	if err := p.flush(); err != nil {
		return err
	}
	last, err := p.lastKey()
	if err != nil {
		return err
	}
	// The end is excluded, so it is the smallest key above the last.
	if err := p.db.Compact(ctx, nil, append(last, 0), true); err != nil {
		return fmt.Errorf("pebble: compact: %w", err)
	}
	return p.wait(ctx)
}

func (p *pebbleStore) Rest(ctx context.Context) error {
	if err := p.flush(); err != nil {
		return err
	}
	return p.wait(ctx)
}

func (p *pebbleStore) flush() error {
	if err := p.commit(); err != nil {
		return err
	}
	return failed("pebble: flush", p.db.Flush())
}

// wait waits until nothing runs in the background. A compaction that ends starts the
// next that is due before it stops being counted.
func (p *pebbleStore) wait(ctx context.Context) error {
	err := until(ctx, time.Millisecond, func() bool {
		m := p.db.Metrics()
		return m.Compact.NumInProgress == 0 && m.Flush.NumInProgress == 0
	})
	return cmp.Or(err, p.log.failure())
}

func (p *pebbleStore) lastKey() ([]byte, error) {
	it, err := p.db.NewIter(nil)
	if err != nil {
		return nil, fmt.Errorf("pebble: new iterator: %w", err)
	}
	var last []byte
	if it.Last() {
		last = append(last, it.Key()...)
	}
	if err := it.Close(); err != nil {
		return nil, fmt.Errorf("pebble: find the last key: %w", err)
	}
	return last, nil
}

func (p *pebbleStore) Set(key, value []byte) error {
	return failed("pebble: set", p.db.Set(key, value, p.sets))
}

func (p *pebbleStore) Delete(key []byte) error {
	return failed("pebble: delete", p.db.Delete(key, p.sets))
}

func (p *pebbleStore) DeleteRange(start, end []byte) error {
	return failed("pebble: delete range", p.db.DeleteRange(start, end, p.sets))
}

func (p *pebbleStore) Add(key, counter []byte) error {
	return failed("pebble: merge", p.db.Merge(key, counter, p.sets))
}

// pebbleCounters64 adds counters up, in whatever order they come.
var pebbleCounters64 = &pebble.Merger{
	Name: "kvbench.counters",
	Merge: func(_, value []byte) (pebble.ValueMerger, error) {
		s := &pebbleSum{}
		return s, s.MergeNewer(value)
	},
}

// pebbleSum is a counter that is added up.
type pebbleSum struct{ sum uint64 }

func (s *pebbleSum) MergeNewer(value []byte) error {
	if len(value) != 8 {
		return fmt.Errorf("a counter of %d bytes", len(value))
	}
	s.sum += binary.LittleEndian.Uint64(value)
	return nil
}

func (s *pebbleSum) MergeOlder(value []byte) error { return s.MergeNewer(value) }

func (s *pebbleSum) Finish(bool) ([]byte, io.Closer, error) {
	return binary.LittleEndian.AppendUint64(nil, s.sum), nil, nil
}

func (p *pebbleStore) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	return p.scan(start, limit, func(it *pebble.Iterator) { visit(it.Key(), it.Value()) })
}

// ScanKeys implements KeyScanner: a value that nobody asks for is not read.
func (p *pebbleStore) ScanKeys(start []byte, limit int, visit func(key []byte)) error {
	return p.scan(start, limit, func(it *pebble.Iterator) { visit(it.Key()) })
}

func (p *pebbleStore) scan(start []byte, limit int, visit func(it *pebble.Iterator)) error {
	it, err := p.db.NewIter(nil)
	if err != nil {
		return fmt.Errorf("pebble: new iterator: %w", err)
	}
	n := 0
	for ok := it.SeekGE(start); ok; ok = it.Next() {
		visit(it)
		if n++; n == limit {
			break
		}
	}
	return failed("pebble: scan", it.Close())
}

// Close closes the database. Readers are closed first.
func (p *pebbleStore) Close() error {
	_ = p.batch.Close()
	return failed("pebble: close", p.db.Close())
}

// pebbleIteratorLive answers lookups through one iterator for each reader.
type pebbleIteratorLive struct{ *pebbleStore }

func openPebbleIterator(dir string, s Settings) (Live, error) {
	p, err := openPebbleTree(dir, s, bloom.FilterPolicy(10), Tree{})
	if err != nil {
		return nil, err
	}
	return pebbleIteratorLive{p}, nil
}

// NewReader opens an iterator, whatever access is asked for.
func (p pebbleIteratorLive) NewReader(_ Access, kind Kind) (Reader, error) {
	return p.pebbleStore.NewReader(Iterator, kind)
}

func (p *pebbleStore) Shape() (Shape, error) {
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
func (p *pebbleStore) Usage() Usage {
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

// pebbleLog keeps Pebble quiet and remembers the first error it reports from
// the background.
type pebbleLog struct {
	first atomic.Pointer[error]
	fatal io.Writer
}

func (l *pebbleLog) Infof(string, ...any) {}

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

// NewReader returns a reader that uses Get, or one iterator that consults
// last-level filters.
func (p *pebbleStore) NewReader(access Access, kind Kind) (Reader, error) {
	switch access {
	case Get:
		return &pebbleGet{counters: pebbleCounters{p, kind}}, nil
	case Iterator:
		it, err := p.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
		if err != nil {
			return nil, fmt.Errorf("pebble: new iterator: %w", err)
		}
		p.iterators = append(p.iterators, it)
		return &pebbleIterator{pebbleCounters{p, kind}, it}, nil
	}
	return nil, fmt.Errorf("pebble: no access named %q", access)
}

type pebbleGet struct {
	holdsNothing
	counters pebbleCounters
}

// Get copies the value out and closes what DB.Get returns.
func (r *pebbleGet) Get(dst, key []byte) ([]byte, bool, error) {
	value, closer, err := r.counters.store.db.Get(key)
	if err != nil {
		//nolint:errorlint // the fast path comes first
		if err == pebble.ErrNotFound || errors.Is(err, pebble.ErrNotFound) {
			return dst, false, nil
		}
		return dst, false, fmt.Errorf("pebble: get: %w", err)
	}
	dst = append(dst, value...)
	return dst, true, closer.Close()
}

// Counters returns the counts of the whole database; bytes are those of the
// read category that DB.Get has for itself.
func (r *pebbleGet) Counters() (Counters, error) {
	m := r.counters.store.db.Metrics()
	var bytesRead uint64
	for _, c := range m.CategoryStats {
		if c.Category.String() == "pebble-get" {
			bytesRead = c.CategoryStats.BlockBytes - c.CategoryStats.BlockBytesInCache
		}
	}
	return r.counters.from(m, bytesRead), nil
}

type pebbleIterator struct {
	counters pebbleCounters
	it       *pebble.Iterator
}

// Get seeks the key as a prefix, which lets the iterator consult filters.
func (r *pebbleIterator) Get(dst, key []byte) ([]byte, bool, error) {
	if !r.it.SeekPrefixGE(key) || !bytes.Equal(r.it.Key(), key) {
		if err := r.it.Error(); err != nil {
			return dst, false, fmt.Errorf("pebble: seek: %w", err)
		}
		return dst, false, nil
	}
	value, err := r.it.ValueAndErr()
	if err != nil {
		return dst, false, fmt.Errorf("pebble: value: %w", err)
	}
	return append(dst, value...), true, nil
}

// Counters returns the counts of the whole database; bytes are those of all iterators
// that are open.
func (r *pebbleIterator) Counters() (Counters, error) {
	store := r.counters.store
	var bytesRead uint64
	for _, it := range store.iterators {
		s := it.Stats().InternalStats
		bytesRead += s.BlockBytes - s.BlockBytesInCache
	}
	return r.counters.from(store.db.Metrics(), bytesRead), nil
}

func (r *pebbleIterator) Close() error {
	store := r.counters.store
	store.iterators = slices.DeleteFunc(store.iterators, func(it *pebble.Iterator) bool { return it == r.it })
	return failed("pebble: close iterator", r.it.Close())
}

// pebbleCounters maps what Pebble counts to what kvbench reports.
type pebbleCounters struct {
	store *pebbleStore
	kind  Kind
}

// from translates metrics. Pebble's filter "hits" are negatives and its
// "misses" positives of both sorts. The harness knows which they are where the
// truth leaves no choice: an absent key has no true positive, and in a settled
// tree the only file considered for an existing key is the one that has it.
// Block counts are of every kind of block: Pebble does not tell data blocks
// from index and filter blocks.
func (c pebbleCounters) from(m *pebble.Metrics, bytesRead uint64) Counters {
	t := UnknownTally()
	t.Remembered = 0
	t.Negatives = Count(m.Filter.Hits)
	positives := Count(m.Filter.Misses)
	t.FilterChecks = t.Negatives + positives
	switch {
	case c.kind == Absent:
		t.TruePositives, t.FalsePositives = 0, positives
	case c.singleLevel(m):
		t.TruePositives, t.FalsePositives = positives, 0
	}
	t.BlocksFromCache = Count(m.BlockCache.Hits)
	t.BlocksFromDisk = Count(m.BlockCache.Misses)
	t.BytesFromDisk = Count(bytesRead)
	return Counters{Lookups: Unknown, MemtableAnswers: Unknown, Total: t}
}

func (c pebbleCounters) singleLevel(m *pebble.Metrics) bool {
	used := 0
	for i := range m.Levels {
		if m.Levels[i].TablesCount > 0 {
			used++
		}
	}
	return used == 1 && m.Levels[0].TablesCount == 0
}
