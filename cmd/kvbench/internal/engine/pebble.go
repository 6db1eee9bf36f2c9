package engine

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// Pebble is a store of github.com/cockroachdb/pebble/v2. What is not set here is
// Pebble's default, with its bytewise comparer, whose Split is the whole key.
type Pebble struct {
	batched
	db    *pebble.DB
	batch *pebble.Batch
	sets  *pebble.WriteOptions
	log   *pebbleLog
	*readCounter

	iterators []*pebble.Iterator // of the readers that are open
}

// openPebble opens a store as programs have it.
func openPebble(dir string, s Settings) (Live, error) {
	return openPebbleTree(dir, s, bloom.FilterPolicy(10), Tree{})
}

// openPebbleTree opens or creates a store in dir with one filter policy on every level;
// nil means no filter.
func openPebbleTree(dir string, s Settings, policy pebble.FilterPolicy, t Tree) (*Pebble, error) {
	log := &pebbleLog{fatal: os.Stderr}
	o, reads := pebbleOptions(s, policy, t, log), newReadCounter(&s)
	reads.countPebble(o)
	db, err := pebble.Open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("pebble: open %s: %w", dir, err)
	}
	p := &Pebble{db: db, batch: db.NewBatch(), sets: pebble.NoSync, log: log, readCounter: reads}
	if s.Durability == Durable {
		p.sets = pebble.Sync
	}
	p.batched = batched{perKey: s.BatchKeys, write: p.writeBatch,
		add: func(key, value []byte) error { return p.batch.Set(key, value, nil) }}
	return p, nil
}

// writeBatch writes the batch, and waits for nothing.
func (p *Pebble) writeBatch() error {
	if err := p.batch.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("pebble: commit: %w", err)
	}
	p.batch.Reset()
	return nil
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
		EventListener:              pebbleEvents(s.Background),
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

// pebbleSeparation maps the settings of large values.
func pebbleSeparation(s *Settings) pebble.ValueSeparationPolicy {
	return pebble.ValueSeparationPolicy{Enabled: true, MinimumSize: s.SeparateFrom, MaxBlobReferenceDepth: pebbleDepth,
		RewriteMinimumAge: pebbleBlobAge, TargetGarbageRatio: s.garbageShare()}
}

// Settle commits, flushes, compacts every key and waits for background work.
func (p *Pebble) Settle(ctx context.Context) error {
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

// Rest commits, flushes and waits until Pebble finds nothing left to compact.
func (p *Pebble) Rest(ctx context.Context) error {
	if err := p.flush(); err != nil {
		return err
	}
	return p.wait(ctx)
}

// flush commits and flushes.
func (p *Pebble) flush() error {
	if err := p.commit(); err != nil {
		return err
	}
	return failed("pebble: flush", p.db.Flush())
}

// wait waits until nothing runs in the background. A compaction that ends starts the
// next that is due before it stops being counted.
func (p *Pebble) wait(ctx context.Context) error {
	for m := p.db.Metrics(); m.Compact.NumInProgress > 0 || m.Flush.NumInProgress > 0; m = p.db.Metrics() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return p.log.failure()
}

// lastKey returns a copy of the largest key.
func (p *Pebble) lastKey() ([]byte, error) {
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

// Set writes one key.
func (p *Pebble) Set(key, value []byte) error {
	return failed("pebble: set", p.db.Set(key, value, p.sets))
}

// Scan walks a new iterator.
func (p *Pebble) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	return p.scan(start, limit, func(it *pebble.Iterator) { visit(it.Key(), it.Value()) })
}

// ScanKeys implements KeyScanner: a value that nobody asks for is not read.
func (p *Pebble) ScanKeys(start []byte, limit int, visit func(key []byte)) error {
	return p.scan(start, limit, func(it *pebble.Iterator) { visit(it.Key()) })
}

func (p *Pebble) scan(start []byte, limit int, visit func(it *pebble.Iterator)) error {
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
func (p *Pebble) Close() error {
	_ = p.batch.Close()
	return failed("pebble: close", p.db.Close())
}

// pebbleIteratorLive answers lookups through one iterator for each reader.
type pebbleIteratorLive struct{ *Pebble }

func openPebbleIterator(dir string, s Settings) (Live, error) {
	p, err := openPebbleTree(dir, s, bloom.FilterPolicy(10), Tree{})
	if err != nil {
		return nil, err
	}
	return pebbleIteratorLive{p}, nil
}

// NewReader opens an iterator, whatever access is asked for.
func (p pebbleIteratorLive) NewReader(_ Access, kind Kind) (Reader, error) {
	return p.Pebble.NewReader(Iterator, kind)
}
