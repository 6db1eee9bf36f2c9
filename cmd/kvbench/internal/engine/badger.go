package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/siftkv/siftkv/internal/racebuild"
)

type badgerStore struct {
	batched
	db      *badger.DB
	batch   pairs
	workers int
	log     *badgerCollector // nil if values are in the tree
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
	if s.SeparateFrom > 0 {
		setBadgerLog(&o, &s)
	}
	db, err := badger.Open(o)
	if err != nil {
		return nil, fmt.Errorf("badger: open %s: %w", dir, err)
	}
	b := &badgerStore{db: db, workers: max(1, s.Compactions)}
	if s.SeparateFrom > 0 {
		b.log = startBadgerCollector(db, s.garbageShare())
	}
	b.batched = batched{perKey: s.BatchKeys, add: b.batch.add, write: b.writeBatch, reset: b.batch.reset}
	return b, nil
}

// writeBatch writes the batch as one transaction, or as several where one has no room for it.
func (b *badgerStore) writeBatch() error {
	tx := b.db.NewTransaction(true)
	defer func() { tx.Discard() }()
	for i := range b.batch.len() {
		key, value := b.batch.at(i)
		err := tx.Set(key, value)
		if errors.Is(err, badger.ErrTxnTooBig) {
			if err = tx.Commit(); err == nil {
				tx = b.db.NewTransaction(true)
				err = tx.Set(key, value)
			}
		}
		if err != nil {
			return fmt.Errorf("badger: update: %w", err)
		}
	}
	return failed("badger: update", tx.Commit())
}

// Settle commits and compacts into one level. Badger has no flush: what is in
// its memtable stays there until the store is closed.
func (b *badgerStore) Settle(ctx context.Context) error {
	if err := b.commit(); err != nil {
		return err
	}
	for again := true; again; {
		if err := b.db.Flatten(b.workers); err != nil {
			return fmt.Errorf("badger: flatten: %w", err)
		}
		if b.log == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		var err error
		if again, err = b.log.collect(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

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

func (b *badgerStore) Delete(key []byte) error {
	return failed("badger: delete", b.db.Update(func(tx *badger.Txn) error { return tx.Delete(key) }))
}

// Scan walks a new iterator. It fetches values ahead if they are in the log; in the tree
// they are beside their keys.
func (b *badgerStore) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	var key []byte
	visitValue := func(value []byte) error { //nolint:unparam // badger asks for it
		visit(key, value)
		return nil
	}
	return b.scan(b.log != nil, start, limit, func(item *badger.Item) error {
		key = item.Key()
		return item.Value(visitValue)
	})
}

func (b *badgerStore) ScanKeys(start []byte, limit int, visit func(key []byte)) error {
	return b.scan(false, start, limit, func(item *badger.Item) error {
		visit(item.Key())
		return nil
	})
}

func (b *badgerStore) scan(ahead bool, start []byte, limit int, visit func(*badger.Item) error) error {
	err := b.db.View(func(tx *badger.Txn) error {
		o := badger.DefaultIteratorOptions
		o.PrefetchValues = ahead
		it := tx.NewIterator(o)
		defer it.Close()
		n := 0
		for it.Seek(start); it.Valid(); it.Next() {
			if err := visit(it.Item()); err != nil {
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

// Close ends the collection of the log of values before the store.
func (b *badgerStore) Close() error {
	var err error
	if b.log != nil {
		err = b.log.stop()
	}
	return errors.Join(err, failed("badger: close", b.db.Close()))
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

// Badger takes log files of a mebibyte at least, and values in the tree of a seventh of a
// memtable at most.
const (
	badgerLogFiles      = 2   // of the log, for a memtable
	badgerLogShare      = 128 // memtables that have no large values are smaller by
	minBadgerLog        = 1 << 20
	badgerValuesOfTable = 8
	badgerCollectEvery  = 250 * time.Millisecond
)

// setBadgerLog has large values lie in the log of values. It is collected by what flushed and
// compacted tables say of it: memtables that were as large as those with values in them would
// keep that back for longer than anything is measured here.
func setBadgerLog(o *badger.Options, s *Settings) {
	from := int64(s.SeparateFrom)
	o.ValueThreshold = min(from, 1<<20) // the most it takes
	o.ValueLogFileSize = max(minBadgerLog, s.MemtableBytes/badgerLogFiles)
	o.MemTableSize = max(minMemtable, s.MemtableBytes/badgerLogShare, badgerValuesOfTable*o.ValueThreshold)
}

// A badgerCollector runs Badger's collection of the log of values, which Badger leaves to
// programs: from time to time, and again as long as it rewrites files. Under the race detector
// it runs only for a store that is settled: a collection of Badger v4.9.6 reads the version of
// a memtable (DB.MaxVersion) while writers set it.
type badgerCollector struct {
	db    *badger.DB
	ratio float64
	quit  chan struct{}
	ended chan struct{}

	mu     sync.Mutex // one collection at a time
	failed error      // of one in the background
}

func startBadgerCollector(db *badger.DB, ratio float64) *badgerCollector {
	c := &badgerCollector{db: db, ratio: ratio, quit: make(chan struct{}), ended: make(chan struct{})}
	if racebuild.Enabled {
		close(c.ended)
		return c
	}
	go func() {
		defer close(c.ended)
		tick := time.NewTicker(badgerCollectEvery)
		defer tick.Stop()
		for {
			select {
			case <-c.quit:
				return
			case <-tick.C:
			}
			if _, err := c.collect(); err != nil {
				c.failed = err
				return
			}
		}
	}()
	return c
}

// collect collects until Badger finds no file with enough garbage, or the store is about to be
// closed, and reports whether a file was rewritten.
func (c *badgerCollector) collect() (rewritten bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		select {
		case <-c.quit:
			return rewritten, nil
		default:
		}
		if err := c.db.RunValueLogGC(c.ratio); err != nil {
			if errors.Is(err, badger.ErrNoRewrite) {
				return rewritten, nil
			}
			return rewritten, fmt.Errorf("badger: collect the value log: %w", err)
		}
		rewritten = true
	}
}

// stop ends the collection, and returns what it failed with. It is called once.
func (c *badgerCollector) stop() error {
	close(c.quit)
	<-c.ended
	return c.failed
}
