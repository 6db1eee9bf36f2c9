package kv

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Checkpoints and backups do not wait for a version edit that is being written, which may take as long as a request to
// an object store: it is not in them.
func TestCopiesDoNotWaitForAnEdit(t *testing.T) {
	t.Parallel()
	db := openDir(t, "db", &Options{harness: harness.Harness{FS: vfs.NewMem()}})
	require.NoError(t, db.Set([]byte("k"), []byte("v"), NoSync))
	require.NoError(t, db.Flush(t.Context()))
	db.manifest.Lock()
	done := make(chan error, 2)
	go func() { done <- db.Checkpoint(t.Context(), "copy") }()
	go func() {
		_, err := db.Backup(t.Context(), io.Discard, BackupMark{})
		done <- err
	}()
	storetest.Until(func() bool { return len(done) == 2 })
	db.manifest.Unlock()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.NoError(t, db.Close())
}
