package godatastore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	ds "github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/adapters/godatastore"
	"github.com/siftkv/siftkv/kv"
)

// Results that end with an error have given everything back: Rest closes nothing then.
func TestResultsThatFailAreClosed(t *testing.T) {
	d, err := godatastore.Open(t.TempDir(), nil)
	require.NoError(t, err)
	require.NoError(t, d.Put(t.Context(), ds.NewKey("/a"), nil))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := d.Query(ctx, query.Query{})
	require.NoError(t, err)
	cancel()
	_, err = r.Rest()
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, d.Close(), "with no iterator open")
}

// The channel of Results is filled by a goroutine of the host's: who reads it may use the transaction meanwhile.
func TestATransactionIsUsedWhileItsQueryRuns(t *testing.T) {
	ctx, d := t.Context(), open(t, t.TempDir(), nil)
	const keys = 500
	for n := range keys {
		require.NoError(t, d.Put(ctx, ds.NewKey(fmt.Sprintf("/a/%03d", n)), []byte("v")))
	}
	tx, err := d.NewTransaction(ctx, false)
	require.NoError(t, err)
	r, err := tx.Query(ctx, query.Query{Prefix: "/a", KeysOnly: true})
	require.NoError(t, err)
	for next := range r.Next() {
		require.NoError(t, next.Error)
		has, err := tx.Has(ctx, ds.NewKey(next.Key))
		require.NoError(t, err)
		require.True(t, has)
		require.NoError(t, tx.Put(ctx, ds.NewKey("/b").ChildString(next.Key), nil))
		_, err = tx.GetSize(ctx, ds.NewKey(next.Key))
		require.NoError(t, err)
		require.NoError(t, tx.Delete(ctx, ds.NewKey(next.Key)))
	}
	require.NoError(t, r.Close())
	require.NoError(t, tx.Commit(ctx))
	r, err = d.Query(ctx, query.Query{})
	require.NoError(t, err)
	left, err := r.Rest()
	require.NoError(t, err)
	require.Len(t, left, keys)
	require.Equal(t, "/b/a/000", left[0].Key)
}

// No write of one key waits for the disk: Sync does.
func TestWritesAreNotSynced(t *testing.T) {
	ctx := t.Context()
	db, err := kv.Open(t.TempDir(), nil)
	require.NoError(t, err)
	d, key := godatastore.New(db), ds.NewKey("/a")
	before := db.Metrics().WALSyncs
	require.NoError(t, d.Put(ctx, key, nil))
	require.NoError(t, d.PutWithTTL(ctx, key, nil, time.Hour))
	require.NoError(t, d.SetTTL(ctx, key, time.Hour))
	require.NoError(t, d.Delete(ctx, key))
	require.Equal(t, before, db.Metrics().WALSyncs)
	require.NoError(t, d.Sync(ctx, key))
	require.Greater(t, db.Metrics().WALSyncs, before)
	require.NoError(t, d.Close())
}
