package formats

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// goldenBackup is a full backup of version 1 of the format, and goldenBackupSeparated is one of version 2, with blob
// files. Every later version restores them.
const (
	goldenBackup          = testdata + "backup-v1.bin"
	goldenBackupSeparated = testdata + "backup-v2.bin"
)

func TestTheGoldenBackupIsRestored(t *testing.T) {
	if golden.Absent(goldenBackup) {
		db := stores.OpenDir(t, copyGolden(t, goldenStores[0].dir), nil)
		ingested := storetest.IngestFile(t, vfs.OS, filepath.Join(t.TempDir(), "file"), nil, "ingested=yes",
			"-none/001")
		require.NoError(t, db.Ingest(t.Context(), []string{ingested}, nil))
		stream, _ := stores.BackUp(t, db, kv.BackupMark{})
		golden.Write(t, goldenBackup, stream)
		require.NoError(t, db.Close())
	}
	stream, err := os.ReadFile(goldenBackup)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "restored")
	require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(stream), dir, nil))
	want := goldenStores[0].contents()
	want["ingested"] = "yes"
	delete(want, "none/001")
	require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
	stores.RequireRestored(t, vfs.OS, dir, want)
}

func TestTheGoldenBackupOfSeparatedValuesIsRestored(t *testing.T) {
	if golden.Absent(goldenBackupSeparated) {
		dir := filepath.Join(t.TempDir(), "store")
		require.NoError(t, os.CopyFS(dir, os.DirFS(goldenSeparated)))
		db := stores.OpenDir(t, dir, &kv.Options{Clock: (&storetest.Clock{}).Time})
		stream, _ := stores.BackUp(t, db, kv.BackupMark{})
		golden.Write(t, goldenBackupSeparated, stream)
		require.NoError(t, db.Close())
	}
	stream, err := os.ReadFile(goldenBackupSeparated)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "restored")
	require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(stream), dir, nil))
	require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
	later := &storetest.Clock{}
	later.Advance(1e9)
	stores.RequireRestoredAt(t, vfs.OS, dir, separatedContents(), later)
	db := stores.OpenDir(t, dir, &kv.Options{Clock: later.Time})
	require.Positive(t, storetest.RequireBlobs(t, db))
	require.NoError(t, db.Close())
}
