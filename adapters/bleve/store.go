package siftbleve

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/blevesearch/bleve/v2/registry"
	store "github.com/blevesearch/upsidedown_store_api"

	"github.com/siftkv/siftkv/kv"
)

// Name is what bleve knows the store by.
const Name = "siftkv"

// Errors of New that callers match with errors.Is. The error that is returned names the key or the directory.
var (
	// ErrConfig is matched when the configuration is wrong.
	ErrConfig = errors.New("bleve: siftkv: invalid configuration")
	// ErrMissing is matched when there is no store, and none was to be made. It matches os.ErrNotExist too.
	ErrMissing = fmt.Errorf("bleve: siftkv: there is no store: %w", os.ErrNotExist)
	// ErrExists is matched when there is a store where a new one was to be made. It matches os.ErrExist too.
	ErrExists = fmt.Errorf("bleve: siftkv: there is a store already: %w", os.ErrExist)
)

// A Store is a SiftKV store as bleve's upsidedown indexes use one. Its methods are safe for concurrent use.
type Store struct {
	db     *kv.DB
	rows   rows
	writes *kv.WriteOptions
	closed atomic.Bool
}

var (
	_ store.KVStore      = (*Store)(nil)
	_ store.KVStoreStats = (*Store)(nil)
)

func init() {
	if err := registry.RegisterKVStore(Name, New); err != nil {
		panic(err)
	}
}

// New opens the store that config describes, which has the keys that the package lists; the result is a *Store. mo
// combines the operands of Merge; it may be nil, and Merge is then an error of ExecuteBatch. bleve calls New, by Name.
func New(mo store.MergeOperator, config map[string]any) (store.KVStore, error) {
	c, err := parseConfig(config)
	if err != nil {
		return nil, err
	}
	if err := c.checkExistence(); err != nil {
		return nil, err
	}
	s := &Store{rows: rows{mo}, writes: c.writes}
	if mo != nil {
		c.options.Merger = s.rows
	}
	if s.db, err = kv.Open(c.path, &c.options); err != nil {
		return nil, openError(err)
	}
	return s, nil
}

// openError returns an error of kv.Open as one of this package.
func openError(err error) error {
	switch {
	case errors.Is(err, kv.ErrNotExist):
		return fmt.Errorf("%w: %w", ErrMissing, err)
	case errors.Is(err, kv.ErrInvalidOptions):
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return fmt.Errorf("bleve: siftkv: %w", err)
}

// DB returns the store below: for its metrics, backups and checkpoints, say. Its values are not quite the
// index's (see Merges in the documentation of the package): write by a KVWriter. It is closed with the Store.
func (s *Store) DB() *kv.DB { return s.db }

// Reader returns a snapshot of the present. Close it: while it is open, what later batches replace piles up.
func (s *Store) Reader() (store.KVReader, error) {
	if s.closed.Load() {
		return nil, kv.ErrClosed
	}
	return &reader{s.db.NewSnapshot(), s.rows}, nil
}

// Writer returns a writer. There may be any number of them.
func (s *Store) Writer() (store.KVWriter, error) {
	if s.closed.Load() {
		return nil, kv.ErrClosed
	}
	return writer{s}, nil
}

// Close makes all batches durable and closes the store. Readers that are still open are an error; they stay
// safe to use. A second Close returns what the first did.
func (s *Store) Close() error {
	s.closed.Store(true)
	return s.db.Close()
}
