package siftethdb

import (
	"context"
	"encoding/json"

	"github.com/ethereum/go-ethereum/ethdb"

	"github.com/siftkv/siftkv/kv"
)

// A Database is a store in the form that go-ethereum wants. It is safe for concurrent use. Its errors are
// those of kv: kv.ErrNotFound for a key that is not there, kv.ErrClosed after Close.
type Database struct{ db *kv.DB }

var _ ethdb.KeyValueStore = (*Database)(nil)

// Open opens the store in a directory, which is made if it is not there. Nil options are the defaults.
func Open(dir string, o *kv.Options) (*Database, error) {
	db, err := kv.Open(dir, o)
	if err != nil {
		return nil, err
	}
	return New(db), nil
}

// New returns a store that is open in this form. Close closes it.
func New(db *kv.DB) *Database { return &Database{db} }

// Has reports whether the key is there.
func (d *Database) Has(key []byte) (bool, error) { return d.db.Has(key) }

// Get returns the value of the key: a copy, which the caller may keep and change.
func (d *Database) Get(key []byte) ([]byte, error) { return d.db.Get(key) }

// Put stores a value under a key.
func (d *Database) Put(key, value []byte) error { return d.db.Set(key, value, kv.Async) }

// Delete removes a key. That it is not there is no error.
func (d *Database) Delete(key []byte) error { return d.db.Delete(key, kv.Async) }

// DeleteRange removes all keys of [start, end) in one entry, whatever their number; a nil bound is none.
func (d *Database) DeleteRange(start, end []byte) error {
	return d.db.DeleteRange(start, end, kv.Async)
}

// SyncKeyValue returns when all writes before it are on stable storage.
func (d *Database) SyncKeyValue() error { return d.db.Sync(context.Background()) }

// Compact brings all that is in [start, limit) into the last level; a nil bound is none.
func (d *Database) Compact(start, limit []byte) error {
	return d.db.Compact(context.Background(), start, limit)
}

// Stat returns the metrics of the store, metrics.Store, as JSON.
func (d *Database) Stat() (string, error) {
	text, err := json.MarshalIndent(d.db.Metrics(), "", "  ")
	return string(text), err
}

// Close makes all writes durable and closes the store.
func (d *Database) Close() error { return d.db.Close() }
