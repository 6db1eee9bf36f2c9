package godatastore

import (
	"context"
	"time"

	ds "github.com/ipfs/go-datastore"

	"github.com/siftkv/siftkv/kv"
)

// NewTransaction begins a transaction, which reads the store as it is now and its own writes. Commit fails
// with kv.ErrConflict if something that it read has been written since; then nothing of it was written,
// and the whole may be tried again. A transaction is for one goroutine; close its queries before it ends.
func (d *Datastore) NewTransaction(ctx context.Context, readOnly bool) (ds.Txn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tx, err := d.db.Begin(!readOnly)
	if err != nil {
		return nil, err
	}
	return &txn{tx: tx, reads: reads{tx}}, nil
}

type txn struct {
	tx *kv.Tx
	reads
}

var _ ds.TTL = (*txn)(nil)

func (t *txn) Put(_ context.Context, key ds.Key, value []byte) error {
	return t.tx.Set(key.Bytes(), value)
}
func (t *txn) Delete(_ context.Context, key ds.Key) error { return t.tx.Delete(key.Bytes()) }

func (t *txn) PutWithTTL(_ context.Context, key ds.Key, value []byte, ttl time.Duration) error {
	return t.tx.SetTTL(key.Bytes(), value, ttl)
}

func (t *txn) SetTTL(ctx context.Context, key ds.Key, ttl time.Duration) error {
	value, err := t.Get(ctx, key)
	if err != nil {
		return err
	}
	return t.PutWithTTL(ctx, key, value, ttl)
}

func (t *txn) Commit(ctx context.Context) error { return t.tx.CommitContext(ctx, kv.NoSync) }

func (t *txn) Discard(context.Context) { _ = t.tx.Discard() } // says that it had ended, which is no fault here
