package avalanche

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/ava-labs/avalanchego/database"

	"github.com/siftkv/siftkv/kv"
)

// A Database is a store in the form that avalanchego wants. It is safe for concurrent use. A key that is
// not there is database.ErrNotFound, and a closed store database.ErrClosed; other errors are those of kv.
type Database struct {
	db         *kv.DB
	durability *kv.WriteOptions
	closed     atomic.Bool
}

var _ database.Database = (*Database)(nil)

// Open opens the store in a directory, which is made if it is not there. Nil options are the defaults, and
// writes are then synced.
func Open(dir string, o *kv.Options, w *kv.WriteOptions) (*Database, error) {
	db, err := kv.Open(dir, o)
	if err != nil {
		return nil, err
	}
	return New(db, w), nil
}

// New returns a store that is open in this form, whose writes are as durable as w says: nil is kv.Sync, as
// avalanchego has it with Pebble; kv.NoSync is what it has with its LevelDB. Close closes the store.
func New(db *kv.DB, w *kv.WriteOptions) *Database { return &Database{db: db, durability: w} }

// Has reports whether the key is there.
func (d *Database) Has(key []byte) (bool, error) {
	ok, err := d.db.Has(key)
	return ok, translate(err)
}

// Get returns the value of the key, a copy.
func (d *Database) Get(key []byte) ([]byte, error) {
	value, err := d.db.Get(key)
	return value, translate(err)
}

// Put stores a value under a key.
func (d *Database) Put(key, value []byte) error {
	return translate(d.db.Set(key, value, d.durability))
}

// Delete removes a key. That it is not there is no error.
func (d *Database) Delete(key []byte) error { return translate(d.db.Delete(key, d.durability)) }

// Compact brings all that is in [start, limit) into the last level; a nil bound is none.
func (d *Database) Compact(start, limit []byte) error {
	return translate(d.db.Compact(context.Background(), start, limit))
}

// HealthCheck returns the metrics of the store, metrics.Store, and an error while it takes no writes.
func (d *Database) HealthCheck(context.Context) (any, error) {
	if d.closed.Load() {
		return nil, database.ErrClosed
	}
	m := d.db.Metrics()
	if m.Failure != "" {
		return m, errors.New(m.Failure)
	}
	return m, nil
}

// Close makes all writes durable and closes the store. Iterators that are open end with
// database.ErrClosed, which is no error of Close. A second Close returns database.ErrClosed.
func (d *Database) Close() error {
	if d.closed.Swap(true) {
		return database.ErrClosed
	}
	return without(d.db.Close(), kv.ErrIteratorsOpen)
}

// without returns what is left of an error without the parts that match another one. An error that has no such
// part stays as it is, with its words.
func without(err, part error) error {
	if !errors.Is(err, part) {
		return err
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var left []error
	for _, e := range joined.Unwrap() {
		left = append(left, without(e, part))
	}
	return errors.Join(left...)
}

// translate gives errors the names that avalanchego has for them. Its code compares them by ==, so they
// are not wrapped.
func translate(err error) error {
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return database.ErrNotFound
	case errors.Is(err, kv.ErrClosed):
		return database.ErrClosed
	default:
		return err
	}
}
