package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"
)

type goLevelDB struct {
	batched
	db    *leveldb.DB
	batch leveldb.Batch
	sets  *opt.WriteOptions
}

func openGoLevelDB(dir string, s Settings) (Live, error) {
	compression := map[string]opt.Compression{"none": opt.NoCompression, "snappy": opt.SnappyCompression}[s.Compression]
	if compression == opt.DefaultCompression {
		return nil, fmt.Errorf("goleveldb: no compression named %q", s.Compression)
	}
	db, err := leveldb.OpenFile(dir, &opt.Options{
		BlockCacheCapacity:     int(s.CacheBytes),
		WriteBuffer:            int(s.MemtableBytes),
		BlockSize:              s.BlockBytes,
		Compression:            compression,
		Filter:                 filter.NewBloomFilter(10),
		NoSync:                 s.Durability != Durable,
		OpenFilesCacheCapacity: 4096,
	})
	if err != nil {
		return nil, fmt.Errorf("goleveldb: open %s: %w", dir, err)
	}
	l := &goLevelDB{db: db, sets: &opt.WriteOptions{Sync: s.Durability == Durable}}
	l.batched = batched{perKey: s.BatchKeys, reset: l.batch.Reset,
		write: func() error { return failed("goleveldb: write", l.db.Write(&l.batch, nil)) },
		add: func(key, value []byte) error {
			l.batch.Put(key, value)
			return nil
		}}
	return l, nil
}

func (l *goLevelDB) Settle(ctx context.Context) error {
	if err := l.commit(); err != nil {
		return err
	}
	if err := l.db.CompactRange(util.Range{}); err != nil {
		return fmt.Errorf("goleveldb: compact: %w", err)
	}
	return ctx.Err()
}

// Shape reads the sizes of the levels; entries and filters are not told.
func (l *goLevelDB) Shape() (Shape, error) {
	var stats leveldb.DBStats
	if err := l.db.Stats(&stats); err != nil {
		return Shape{}, fmt.Errorf("goleveldb: stats: %w", err)
	}
	var shape Shape
	for i, n := range stats.LevelTablesCounts {
		if n > 0 {
			shape.Levels = append(shape.Levels, LevelShape{Level: i, Files: n, Bytes: stats.LevelSizes[i]})
		}
	}
	return shape, nil
}

func (l *goLevelDB) NewReader(access Access, _ Kind) (Reader, error) {
	return goLevelDBReader{db: l.db}, onlyGet("goleveldb", access)
}

func (l *goLevelDB) Set(key, value []byte) error {
	return failed("goleveldb: put", l.db.Put(key, value, l.sets))
}

func (l *goLevelDB) Delete(key []byte) error {
	return failed("goleveldb: delete", l.db.Delete(key, l.sets))
}

func (l *goLevelDB) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	it := l.db.NewIterator(nil, nil)
	defer it.Release()
	more := upTo(limit, visit)
	for ok := it.Seek(start); ok && more(it.Key(), it.Value()); ok = it.Next() {
	}
	return failed("goleveldb: scan", it.Error())
}

func (l *goLevelDB) Close() error {
	return failed("goleveldb: close", l.db.Close())
}

// goLevelDBReader looks keys up with Get, which returns a copy of the value.
type goLevelDBReader struct {
	uncounted
	db *leveldb.DB
}

// Get copies the value once more, which costs nanoseconds of its microseconds.
func (r goLevelDBReader) Get(dst, key []byte) ([]byte, bool, error) {
	value, err := r.db.Get(key, nil)
	if err != nil {
		if errors.Is(err, leveldb.ErrNotFound) {
			return dst, false, nil
		}
		return dst, false, fmt.Errorf("goleveldb: get: %w", err)
	}
	return append(dst, value...), true, nil
}
