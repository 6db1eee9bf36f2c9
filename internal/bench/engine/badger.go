package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// badgerStore is a store of github.com/dgraph-io/badger.
type badgerStore struct {
	batched
	db      *badger.DB
	batch   pairs
	workers int
}

func openBadger(dir string, s Settings) (Live, error) {
	compression, ok := map[string]options.CompressionType{"none": options.None, "snappy": options.Snappy,
		"zstd": options.ZSTD}[s.Compression]
	if !ok {
		return nil, fmt.Errorf("badger: no compression named %q", s.Compression)
	}
	o := badger.DefaultOptions(dir)
	o.Logger = nil
	o.SyncWrites = s.Durability == Durable
	o.Compression = compression
	o.MemTableSize = s.MemtableBytes
	o.BlockSize = s.BlockBytes
	o.BlockCacheSize = s.CacheBytes
	if compression == options.None {
		o.BlockCacheSize = 0 // what Badger recommends: its files are mapped
	}
	o.IndexCacheSize = 0 // every index stays in memory
	o.BloomFalsePositive = 0.01
	o.DetectConflicts = false
	o.MetricsEnabled = false
	o.NumCompactors = max(2, s.Compactions) // it takes no fewer
	o.ValueLogFileSize = 64 << 20           // the log of values is not used
	o.ValueThreshold = min(o.ValueThreshold, s.MemtableBytes/16)
	db, err := badger.Open(o)
	if err != nil {
		return nil, fmt.Errorf("badger: open %s: %w", dir, err)
	}
	b := &badgerStore{db: db, workers: max(1, s.Compactions)}
	b.batched = batched{perKey: s.BatchKeys, add: b.batch.add, write: b.writeBatch}
	return b, nil
}

// writeBatch writes the batch as one transaction.
func (b *badgerStore) writeBatch() error {
	err := b.db.Update(func(tx *badger.Txn) error {
		for i := range b.batch.len() {
			if err := tx.Set(b.batch.at(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("badger: update: %w", err)
	}
	b.batch.reset()
	return nil
}

// Settle commits and compacts into one level. Badger has no flush: what is in
// its memtable stays there until the store is closed.
func (b *badgerStore) Settle(ctx context.Context) error {
	if err := b.commit(); err != nil {
		return err
	}
	if err := b.db.Flatten(b.workers); err != nil {
		return fmt.Errorf("badger: flatten: %w", err)
	}
	return ctx.Err()
}

// Shape reads the list of levels.
func (b *badgerStore) Shape() (Shape, error) {
	var shape Shape
	for _, l := range b.db.Levels() {
		if l.NumTables > 0 {
			shape.Levels = append(shape.Levels, LevelShape{Level: l.Level, Files: l.NumTables, Bytes: l.Size})
		}
	}
	return shape, nil
}

// NewReader returns a reader that opens a transaction for each lookup.
func (b *badgerStore) NewReader(access Access, _ Kind) (Reader, error) {
	r := &badgerReader{db: b.db}
	r.view, r.copy = r.get, r.append
	return r, onlyGet("badger", access)
}

func (b *badgerStore) Set(key, value []byte) error {
	return failed("badger: set", b.db.Update(func(tx *badger.Txn) error { return tx.Set(key, value) }))
}

// Scan walks a new iterator. Values are in the tree beside their keys: there is
// nothing to fetch ahead.
func (b *badgerStore) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	err := b.db.View(func(tx *badger.Txn) error {
		o := badger.DefaultIteratorOptions
		o.PrefetchValues = false
		it := tx.NewIterator(o)
		defer it.Close()
		var key []byte
		visitValue := func(value []byte) error {
			visit(key, value)
			return nil
		}
		n := 0
		for it.Seek(start); it.Valid(); it.Next() {
			item := it.Item()
			key = item.Key()
			if err := item.Value(visitValue); err != nil {
				return err
			}
			if n++; n == limit {
				break
			}
		}
		return nil
	})
	return failed("badger: scan", err)
}

func (b *badgerStore) Close() error {
	return failed("badger: close", b.db.Close())
}

// badgerReader keeps its closures, so that a lookup allocates only what Badger
// does.
type badgerReader struct {
	uncounted
	db       *badger.DB
	dst, key []byte
	found    bool
	view     func(*badger.Txn) error
	copy     func([]byte) error
}

// Get copies the value out before the transaction ends.
func (r *badgerReader) Get(dst, key []byte) ([]byte, bool, error) {
	r.dst, r.key, r.found = dst, key, false
	if err := r.db.View(r.view); err != nil {
		return dst, false, fmt.Errorf("badger: view: %w", err)
	}
	return r.dst, r.found, nil
}

func (r *badgerReader) get(tx *badger.Txn) error {
	item, err := tx.Get(r.key)
	if err != nil {
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		return err
	}
	return item.Value(r.copy)
}

func (r *badgerReader) append(value []byte) error {
	r.dst, r.found = append(r.dst, value...), true
	return nil
}
