package siftbleve

import (
	"bytes"
	"errors"
	"io"

	"github.com/blevesearch/bleve/v2/registry"
	store "github.com/blevesearch/upsidedown_store_api"
	"github.com/cockroachdb/pebble/v2"

	"github.com/siftkv/siftkv/kv"
)

// A pebbleStore is bleve's store on Pebble, to compare with: as little as it takes. It merges as Store does,
// by the same functions, and without a read.
type pebbleStore struct {
	db   *pebble.DB
	rows rows
}

const pebbleName = "test-pebble"

func init() {
	if err := registry.RegisterKVStore(pebbleName, newPebble); err != nil {
		panic(err)
	}
}

func newPebble(mo store.MergeOperator, config map[string]any) (store.KVStore, error) {
	r := rows{mo}
	db, err := pebble.Open(config["path"].(string), &pebble.Options{Logger: silent{}, Merger: &pebble.Merger{
		Name: r.Name(),
		Merge: func(key, value []byte) (pebble.ValueMerger, error) {
			return &pebbleMerge{r, bytes.Clone(key), bytes.Clone(value)}, nil
		},
	}})
	return &pebbleStore{db, r}, err
}

type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(string, ...any) {}

type pebbleMerge struct {
	rows       rows
	key, value []byte
}

func (m *pebbleMerge) MergeNewer(v []byte) (err error) {
	m.value, err = m.rows.Merge(m.key, m.value, v)
	return err
}

func (m *pebbleMerge) MergeOlder(v []byte) (err error) {
	m.value, err = m.rows.Merge(m.key, bytes.Clone(v), m.value)
	return err
}

func (m *pebbleMerge) Finish(bool) ([]byte, io.Closer, error) { return m.value, nil, nil }

func (s *pebbleStore) Writer() (store.KVWriter, error) { return pebbleWriter{s}, nil }
func (s *pebbleStore) Reader() (store.KVReader, error) {
	return &pebbleReader{s.db.NewSnapshot(), s.rows}, nil
}
func (s *pebbleStore) Close() error { return s.db.Close() }

type pebbleWriter struct{ s *pebbleStore }

func (w pebbleWriter) NewBatch() store.KVBatch { return &pebbleBatch{b: w.s.db.NewBatch()} }
func (w pebbleWriter) NewBatchEx(o store.KVBatchOptions) ([]byte, store.KVBatch, error) {
	return make([]byte, o.TotalBytes), w.NewBatch(), nil
}
func (w pebbleWriter) ExecuteBatch(b store.KVBatch) error {
	return b.(*pebbleBatch).b.Commit(pebble.Sync)
}
func (w pebbleWriter) Close() error { return nil }

type pebbleBatch struct {
	b       *pebble.Batch
	scratch []byte
}

func (b *pebbleBatch) Set(key, value []byte) {
	b.scratch = appendValue(b.scratch[:0], value)
	_ = b.b.Set(key, b.scratch, nil)
}
func (b *pebbleBatch) Delete(key []byte) { _ = b.b.Delete(key, nil) }
func (b *pebbleBatch) Merge(key, operand []byte) {
	b.scratch = appendOperand(b.scratch[:0], operand)
	_ = b.b.Merge(key, b.scratch, nil)
}
func (b *pebbleBatch) Reset()       { b.b.Reset() }
func (b *pebbleBatch) Close() error { return b.b.Close() }

type pebbleReader struct {
	snapshot *pebble.Snapshot
	rows     rows
}

func (r *pebbleReader) Get(key []byte) ([]byte, error) {
	stored, closer, err := r.snapshot.Get(key)
	if err != nil {
		if errors.Is(err, pebble.ErrNotFound) {
			err = nil
		}
		return nil, err
	}
	stored = append([]byte{}, stored...)
	if err := closer.Close(); err != nil {
		return nil, err
	}
	return r.rows.value(key, stored)
}

func (r *pebbleReader) MultiGet(keys [][]byte) (values [][]byte, err error) {
	values = make([][]byte, len(keys))
	for i, key := range keys {
		if values[i], err = r.Get(key); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (r *pebbleReader) PrefixIterator(prefix []byte) store.KVIterator {
	return r.RangeIterator(prefix, kv.PrefixEnd(prefix))
}

func (r *pebbleReader) RangeIterator(start, end []byte) store.KVIterator {
	it, err := r.snapshot.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		panic(err)
	}
	it.First()
	return &pebbleIterator{it, r.rows}
}

func (r *pebbleReader) Close() error { return r.snapshot.Close() }

type pebbleIterator struct {
	*pebble.Iterator
	rows rows
}

func (i *pebbleIterator) Seek(key []byte) { i.SeekGE(key) }
func (i *pebbleIterator) Next()           { i.Iterator.Next() }
func (i *pebbleIterator) Value() []byte {
	value, err := i.rows.value(i.Key(), i.Iterator.Value())
	if err != nil {
		panic(err)
	}
	return value
}
func (i *pebbleIterator) Current() ([]byte, []byte, bool) {
	if !i.Valid() {
		return nil, nil, false
	}
	return i.Key(), i.Value(), true
}
