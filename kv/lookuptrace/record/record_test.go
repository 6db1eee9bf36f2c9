package record_test

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/lookuptrace/tracetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace/record"
)

func TestLookupsOfALoad(t *testing.T) {
	db, err := kv.Open(filepath.Join(t.TempDir(), "store"), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.Set([]byte("a"), []byte("1"), nil))
	path := filepath.Join(t.TempDir(), "trace")
	look := func() error {
		_, err := db.Get([]byte("a"))
		return err
	}
	require.NoError(t, record.Lookups(db, path, look))
	require.NoError(t, look(), "the trace has ended")
	require.Equal(t, 1, tracetest.Read(t, path).Found)

	failure := errors.New("the load failed")
	require.ErrorIs(t, record.Lookups(db, path, func() error { return failure }), failure)
	require.ErrorIs(t, record.Lookups(db, filepath.Join(path, "x"), look), syscall.ENOTDIR)
}

func TestSettleWaitsForTheStore(t *testing.T) {
	db, err := kv.Open(filepath.Join(t.TempDir(), "store"), &kv.Options{MemtableSize: 64 << 10})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for i := range 2000 {
		require.NoError(t, db.Set([]byte{byte(i), byte(i >> 8)}, make([]byte, 200), nil))
	}
	require.NoError(t, record.Settle(t.Context(), db))
	m := db.Metrics()
	require.Zero(t, m.CompactionDebt+int64(m.RunningCompactions))
	require.NoError(t, db.Set([]byte("a"), nil, nil))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, record.Settle(canceled, db), context.Canceled)
}
