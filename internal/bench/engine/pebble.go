package engine

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// Pebble is a store of github.com/cockroachdb/pebble/v2. What is not set here is
// Pebble's default, with its bytewise comparer, whose Split is the whole key.
type Pebble struct {
	db     *pebble.DB
	batch  *pebble.Batch
	perKey uint32 // keys per batch
	log    *pebbleLog

	iterators []*pebble.Iterator // of the readers that are open
}

// OpenPebble opens or creates a store in dir with one filter policy on every level;
// nil means no filter.
func OpenPebble(dir string, s Settings, policy pebble.FilterPolicy) (*Pebble, error) {
	return OpenPebbleTree(dir, s, policy, Tree{})
}

// OpenPebbleTree is OpenPebble with levels of chosen sizes.
func OpenPebbleTree(dir string, s Settings, policy pebble.FilterPolicy, t Tree) (*Pebble, error) {
	log := &pebbleLog{fatal: os.Stderr}
	db, err := pebble.Open(dir, pebbleOptions(s, policy, t, log))
	if err != nil {
		return nil, fmt.Errorf("pebble: open %s: %w", dir, err)
	}
	return &Pebble{db: db, batch: db.NewBatch(), perKey: uint32(max(1, s.BatchKeys)), log: log}, nil
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
		CacheSize:                  s.CacheBytes,
		MemTableSize:               uint64(s.MemtableBytes),
		FormatMajorVersion:         pebble.FormatNewest,
		CompactionConcurrencyRange: func() (int, int) { return 1, s.Compactions },
		Logger:                     log,
		EventListener:              pebbleEvents(s.Background),
	}
	if t.YoungFiles > 0 {
		// Pebble counts each layer of overlapping files of level 0 twice.
		o.L0CompactionThreshold, o.L0CompactionFileThreshold = 2*t.YoungFiles+1, 2*t.YoungFiles+1
		o.L0StopWritesThreshold = 2*t.YoungFiles + 4
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

// Put adds a key to the current batch.
func (p *Pebble) Put(key, value []byte) error {
	if err := p.batch.Set(key, value, nil); err != nil {
		return fmt.Errorf("pebble: set: %w", err)
	}
	if p.batch.Count() < p.perKey {
		return nil
	}
	return p.commit()
}

func (p *Pebble) commit() error {
	if err := p.batch.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("pebble: commit: %w", err)
	}
	p.batch.Reset()
	return nil
}

// Settle commits, flushes, compacts every key and waits for background work.
func (p *Pebble) Settle(ctx context.Context) error {
	if err := p.commit(); err != nil {
		return err
	}
	if err := p.db.Flush(); err != nil {
		return fmt.Errorf("pebble: flush: %w", err)
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
	if err := p.commit(); err != nil {
		return err
	}
	if err := p.db.Flush(); err != nil {
		return fmt.Errorf("pebble: flush: %w", err)
	}
	return p.wait(ctx)
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

// Close closes the database. Readers are closed first.
func (p *Pebble) Close() error {
	_ = p.batch.Close()
	if err := p.db.Close(); err != nil {
		return fmt.Errorf("pebble: close: %w", err)
	}
	return nil
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
