package remote

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// A slowStore takes what is put at 64 KiB/s.
type slowStore struct{ objstore.Store }

func (s slowStore) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	if !wait(ctx, time.Duration(size>>10)*time.Second/64) {
		return ctx.Err()
	}
	return s.Store.Put(ctx, key, r, size)
}

func (s slowStore) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	if !wait(ctx, time.Duration(len(body)>>10)*time.Second/64) {
		return ctx.Err()
	}
	return s.Store.PutIfAbsent(ctx, key, body)
}

func TestFilesAndLogsAreUploadedOverASlowLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowStore{objstore.NewMem()}
		tables := NewTables(store, TableOptions{})
		defer func() { require.NoError(t, tables.Close()) }()
		body := make([]byte, 64<<20)
		require.NoError(t, tables.Put("table", bytes.NewReader(body), int64(len(body))))

		logs, _ := recoverLogs(t, store)
		publish(t, logs, 1)
		f, err := logs.Create(1)
		require.NoError(t, err)
		_, err = f.Write(body[:8<<20])
		require.NoError(t, err)
		require.NoError(t, f.Sync())
		require.NoError(t, f.Close())
	})
}
