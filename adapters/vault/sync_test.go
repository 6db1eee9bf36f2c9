package siftvault

import (
	"testing"

	"github.com/hashicorp/vault/sdk/physical"
	"github.com/stretchr/testify/require"
)

// Every write waits for a sync of its own.
func TestWritesAreSynced(t *testing.T) {
	ctx := t.Context()
	opened, err := New(map[string]string{"path": t.TempDir()}, nil)
	require.NoError(t, err)
	b := opened.(*Backend)
	e := &physical.Entry{Key: "k", Value: []byte("v")}
	for name, write := range map[string]func() error{
		"put":    func() error { return b.Put(ctx, e) },
		"delete": func() error { return b.Delete(ctx, e.Key) },
		"transaction": func() error {
			return b.Transaction(ctx, []*physical.TxnEntry{{Operation: physical.PutOperation, Entry: e}})
		},
	} {
		before := b.db.Metrics().WALSyncs
		require.NoError(t, write())
		require.Greater(t, b.db.Metrics().WALSyncs, before, name)
	}
	require.NoError(t, b.Close())
}
