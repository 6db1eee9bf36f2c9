package godatastore

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	ds "github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"

	"github.com/siftkv/siftkv/kv"
)

// A Datastore is a store in the form that IPFS wants. It is safe for concurrent use. A key that is not
// there is ds.ErrNotFound; other errors are those of kv.
type Datastore struct {
	db *kv.DB
	reads
}

var (
	_ ds.Batching            = (*Datastore)(nil)
	_ ds.TxnDatastore        = (*Datastore)(nil)
	_ ds.TTLDatastore        = (*Datastore)(nil)
	_ ds.CheckedDatastore    = (*Datastore)(nil)
	_ ds.PersistentDatastore = (*Datastore)(nil)
	_ ds.GCDatastore         = (*Datastore)(nil)
)

// Open opens the store in a directory, which is made if it is not there. Nil options are the defaults.
func Open(dir string, o *kv.Options) (*Datastore, error) {
	db, err := kv.Open(dir, o)
	if err != nil {
		return nil, err
	}
	return New(db), nil
}

// New returns a store that is open in this form. Close closes it.
func New(db *kv.DB) *Datastore { return &Datastore{db: db, reads: reads{of: db}} }

// Put stores a value under a key, for good: a time that it had to live is forgotten.
func (d *Datastore) Put(ctx context.Context, key ds.Key, value []byte) error {
	b := d.db.NewBatch()
	_ = b.Set(key.Bytes(), value) // a batch keeps its errors for Commit
	return b.CommitContext(ctx, kv.NoSync)
}

// Delete removes a key. That it is not there is no error.
func (d *Datastore) Delete(ctx context.Context, key ds.Key) error {
	b := d.db.NewBatch()
	_ = b.Delete(key.Bytes())
	return b.CommitContext(ctx, kv.NoSync)
}

// PutWithTTL stores a value that is there until ttl has passed.
func (d *Datastore) PutWithTTL(ctx context.Context, key ds.Key, value []byte, ttl time.Duration) error {
	b := d.db.NewBatch()
	_ = b.SetTTL(key.Bytes(), value, ttl)
	return b.CommitContext(ctx, kv.NoSync)
}

// SetTTL has the value of a key be there until ttl has passed, counted from now.
func (d *Datastore) SetTTL(ctx context.Context, key ds.Key, ttl time.Duration) error {
	return d.db.UpdateContext(ctx, func(tx *kv.Tx) error {
		if err := newTxn(tx).SetTTL(ctx, key, ttl); err != nil {
			return err
		}
		return tx.CommitContext(ctx, kv.NoSync)
	})
}

// Sync returns when all writes before it are on stable storage, whatever the prefix.
func (d *Datastore) Sync(ctx context.Context, _ ds.Key) error { return d.db.Sync(ctx) }

// Check verifies every byte of every sorted file.
func (d *Datastore) Check(ctx context.Context) error {
	_, err := d.db.Backup(ctx, io.Discard, kv.BackupMark{}) // verifies each file before it copies it
	return err
}

// DiskUsage returns the bytes of the sorted files and of blob files. The log comes on top: what is in memtables, about.
func (d *Datastore) DiskUsage(ctx context.Context) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m := d.db.Metrics()
	used := uint64(m.Blobs.Bytes)
	for _, level := range m.Levels {
		used += uint64(level.Bytes)
	}
	return used, nil
}

// CollectGarbage compacts the whole store, which gives the space of deleted, overwritten and expired
// values back. The store does most of that by itself.
func (d *Datastore) CollectGarbage(ctx context.Context) error {
	return d.db.Compact(ctx, nil, nil)
}

// Close makes all writes durable and closes the store.
func (d *Datastore) Close() error { return d.db.Close() }

// Batch returns an empty batch. It is for one goroutine, and empty again once it is committed.
func (d *Datastore) Batch(context.Context) (ds.Batch, error) { return batch{d.db.NewBatch()}, nil }

type batch struct{ of *kv.Batch }

func (b batch) Put(_ context.Context, key ds.Key, value []byte) error {
	return b.of.Set(key.Bytes(), value)
}
func (b batch) Delete(_ context.Context, key ds.Key) error { return b.of.Delete(key.Bytes()) }

func (b batch) Commit(ctx context.Context) error {
	err := b.of.CommitContext(ctx, kv.NoSync)
	if err == nil {
		b.of.Reset()
	}
	return err
}

// reader is what the store and a transaction are read by.
type reader interface {
	kv.Reader
	Expiry(key []byte) (time.Time, error)
}

// reads are the methods that a Datastore and a transaction share.
type reads struct {
	of reader
	mu *sync.Mutex // nil: of is safe for concurrent use
}

func (r reads) lock() {
	if r.mu != nil {
		r.mu.Lock()
	}
}

func (r reads) unlock() {
	if r.mu != nil {
		r.mu.Unlock()
	}
}

func (r reads) Get(ctx context.Context, key ds.Key) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.lock()
	defer r.unlock()
	value, err := r.of.Get(key.Bytes())
	return value, translate(err)
}

func (r reads) Has(ctx context.Context, key ds.Key) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	r.lock()
	defer r.unlock()
	return r.of.Has(key.Bytes())
}

func (r reads) GetSize(ctx context.Context, key ds.Key) (int, error) {
	if err := ctx.Err(); err != nil {
		return -1, err
	}
	r.lock()
	defer r.unlock()
	size, err := r.of.GetSize(key.Bytes())
	if err != nil {
		return -1, translate(err)
	}
	return size, nil
}

// GetExpiration returns until when the key is there; the zero time means for good.
func (r reads) GetExpiration(ctx context.Context, key ds.Key) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	r.lock()
	defer r.unlock()
	at, err := r.of.Expiry(key.Bytes())
	return at, translate(err)
}

// Query returns the entries that a query asks for, as they are now. Close the results, or read them to
// their end or an error.
func (r reads) Query(ctx context.Context, q query.Query) (query.Results, error) {
	return results(ctx, r, q)
}

func translate(err error) error {
	if errors.Is(err, kv.ErrNotFound) {
		return ds.ErrNotFound
	}
	return err
}
