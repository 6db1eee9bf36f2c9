package avalanche

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

// Writes are as durable as New was told: by default each waits for a sync.
func TestDurability(t *testing.T) {
	for _, w := range []*kv.WriteOptions{nil, kv.Sync, kv.NoSync} {
		d, err := Open(t.TempDir(), nil, w)
		require.NoError(t, err)
		batched := func() error {
			b := d.NewBatch()
			require.NoError(t, b.Put([]byte("k"), nil))
			return b.Write()
		}
		for name, write := range map[string]func() error{
			"put":    func() error { return d.Put([]byte("k"), nil) },
			"delete": func() error { return d.Delete([]byte("k")) },
			"batch":  batched,
		} {
			before := d.db.Metrics().WALSyncs
			require.NoError(t, write())
			require.Equal(t, w != kv.NoSync, d.db.Metrics().WALSyncs > before, name)
		}
		require.NoError(t, d.Close())
	}
}
