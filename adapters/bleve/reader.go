package siftbleve

import (
	"errors"

	store "github.com/blevesearch/upsidedown_store_api"

	"github.com/siftkv/siftkv/kv"
)

// A reader is a snapshot of the store, safe for concurrent use.
type reader struct {
	snapshot *kv.Snapshot
	rows     rows
}

// Get returns the value of key, which is the caller's; nil if there is none.
func (r *reader) Get(key []byte) ([]byte, error) {
	stored, err := r.snapshot.Get(key)
	if err != nil {
		if errors.Is(err, kv.ErrNotFound) {
			err = nil
		}
		return nil, err
	}
	return r.rows.value(key, stored)
}

// MultiGet returns the values of keys, in their order; nil for those that are not there.
func (r *reader) MultiGet(keys [][]byte) ([][]byte, error) {
	values, err := r.snapshot.MultiGet(keys)
	if err != nil {
		return nil, err
	}
	for i, stored := range values {
		if stored == nil {
			continue
		}
		if values[i], err = r.rows.value(keys[i], stored); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// PrefixIterator returns an iterator on the first key that begins with prefix, and over all that do.
func (r *reader) PrefixIterator(prefix []byte) store.KVIterator {
	return r.iterator(&kv.IterOptions{Prefix: prefix})
}

// RangeIterator returns an iterator on the first key of [start, end), and over all of them; a nil start or end
// has no bound.
func (r *reader) RangeIterator(start, end []byte) store.KVIterator {
	return r.iterator(&kv.IterOptions{LowerBound: start, UpperBound: end})
}

func (r *reader) iterator(o *kv.IterOptions) store.KVIterator {
	it, err := r.snapshot.NewIter(o)
	if err != nil {
		return &iterator{err: err}
	}
	it.First()
	return &iterator{it: it, rows: r.rows}
}

// Close gives the snapshot back. Iterators go on.
func (r *reader) Close() error { return r.snapshot.Close() }
