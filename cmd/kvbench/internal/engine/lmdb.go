//go:build lmdb

package engine

import (
	"fmt"
	"os"
	"sync"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine/lmdb"
)

const hasLMDB = true

type lmdbStore struct {
	flat
	db    *lmdb.DB
	batch pairs
	order []int
	group lmdb.Batch
}

func openLMDB(dir string, s Settings) (Live, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lmdb: %w", err)
	}
	db, err := lmdb.Open(dir, s.Durability == Durable)
	if err != nil {
		return nil, err
	}
	l := &lmdbStore{db: db}
	l.batched = batched{perKey: s.BatchKeys, add: l.batch.add, write: l.writeBatch, reset: l.batch.reset}
	return l, nil
}

// writeBatch writes the batch in key order, so that each leaf is found once.
func (l *lmdbStore) writeBatch() error {
	l.order = l.batch.sorted(l.order)
	l.group.Reset()
	for _, i := range l.order {
		l.group.Put(l.batch.at(i))
	}
	return l.db.Write(&l.group)
}

// NewReader returns a reader that renews its transaction for each lookup.
func (l *lmdbStore) NewReader(access Access, _ Kind) (Reader, error) {
	if err := onlyGet("lmdb", access); err != nil {
		return nil, err
	}
	r, err := l.db.NewReader()
	if err != nil {
		return nil, err
	}
	return &lmdbReader{Reader: r}, nil
}

// lmdbBatches are for writes of one key.
var lmdbBatches = sync.Pool{New: func() any { return new(lmdb.Batch) }}

func (l *lmdbStore) Set(key, value []byte) error {
	b := lmdbBatches.Get().(*lmdb.Batch)
	defer lmdbBatches.Put(b)
	b.Reset()
	b.Put(key, value)
	return l.db.Write(b)
}

func (l *lmdbStore) Delete(key []byte) error {
	b := lmdbBatches.Get().(*lmdb.Batch)
	defer lmdbBatches.Put(b)
	b.Reset()
	b.Delete(key)
	return l.db.Write(b)
}

func (l *lmdbStore) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	return l.db.Scan(start, limit, visit)
}

func (l *lmdbStore) Close() error {
	l.db.Close()
	return nil
}

type lmdbReader struct {
	*lmdb.Reader
	none uncounted
}

func (r *lmdbReader) Counters() (Counters, error) { return r.none.Counters() }
