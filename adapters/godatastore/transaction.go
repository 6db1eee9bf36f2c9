package godatastore

import (
	"context"
	"sync"
	"time"

	ds "github.com/ipfs/go-datastore"

	"github.com/siftkv/siftkv/kv"
)

// NewTransaction begins a transaction, which reads the store as it is now and its own writes. Commit fails
// with kv.ErrConflict if something that it read has been written since; then nothing of it was written,
// and the whole may be tried again. Its calls take turns, so that it may be used while the channel of a query's
// results, which a goroutine of the host's fills, is read. Close its queries before it ends.
func (d *Datastore) NewTransaction(ctx context.Context, readOnly bool) (ds.Txn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tx, err := d.db.Begin(!readOnly)
	if err != nil {
		return nil, err
	}
	return newTxn(tx), nil
}

// A txn is a transaction. The mutex of its reads is held by whoever uses the kv.Tx or an iterator of it.
type txn struct {
	tx *kv.Tx
	reads
}

func newTxn(tx *kv.Tx) *txn { return &txn{tx, reads{tx, new(sync.Mutex)}} }

var _ ds.TTL = (*txn)(nil)

func (t *txn) Put(_ context.Context, key ds.Key, value []byte) error {
	t.lock()
	defer t.unlock()
	return t.tx.Set(key.Bytes(), value)
}

func (t *txn) Delete(_ context.Context, key ds.Key) error {
	t.lock()
	defer t.unlock()
	return t.tx.Delete(key.Bytes())
}

func (t *txn) PutWithTTL(_ context.Context, key ds.Key, value []byte, ttl time.Duration) error {
	t.lock()
	defer t.unlock()
	return t.tx.SetTTL(key.Bytes(), value, ttl)
}

func (t *txn) SetTTL(ctx context.Context, key ds.Key, ttl time.Duration) error {
	value, err := t.Get(ctx, key)
	if err != nil {
		return err
	}
	return t.PutWithTTL(ctx, key, value, ttl)
}

func (t *txn) Commit(ctx context.Context) error {
	t.lock()
	defer t.unlock()
	return t.tx.CommitContext(ctx, kv.NoSync)
}

func (t *txn) Discard(context.Context) {
	t.lock()
	defer t.unlock()
	_ = t.tx.Discard() // it has no errors
}
