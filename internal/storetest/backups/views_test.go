package backups

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// Increments go on from backups of views, and end in those of the writer. Two views of one log cannot follow
// each other: the files that they make of it have the same number.
func TestBackupsOfViewsInAChain(t *testing.T) {
	stores.InTablesAndSeparated(t, testBackupsOfViewsInAChain)
}

func testBackupsOfViewsInAChain(t *testing.T, from int) {
	db, m := stores.OfTables(t, from)
	var models []storetest.Model
	var streams [][]byte
	var mark kv.BackupMark
	for i := range 4 {
		m = stores.AddTables(t, db, m, fmt.Sprint("round", i), 2)
		stores.Set(t, db, "in", fmt.Sprint("the log ", i))
		m["in"] = fmt.Sprint("the log ", i)
		view, err := kv.OpenReadOnly("db", stores.With(harness.Harness{FS: fsOf(t, db)}, &kv.Options{}))
		require.NoError(t, err)
		stream, next := stores.BackUp(t, view, mark)
		_, err = view.Backup(t.Context(), io.Discard, next)
		require.ErrorIs(t, err, kv.ErrBackupMismatch)
		require.NoError(t, view.Close())
		models, streams, mark = append(models, m), append(streams, stream), next
	}
	last, _ := stores.BackUp(t, db, mark)
	models, streams = append(models, m), append(streams, last)
	disk := vfs.NewMem()
	require.ErrorIs(t, kv.Restore(t.Context(), bytes.NewReader(streams[1]), "dir",
		stores.With(harness.Harness{FS: disk}, &kv.Options{})), kv.ErrBackupMismatch)
	for i, stream := range streams {
		require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(stream), "dir",
			stores.With(harness.Harness{FS: disk}, &kv.Options{})))
		stores.RequireRestored(t, disk, "dir", models[i])
	}
}

// fsOf returns the file system of a store.
func fsOf(t *testing.T, db *kv.DB) vfs.FS {
	t.Helper()
	f, release, err := harness.FilesOf(db)
	require.NoError(t, err)
	defer release()
	return f.FS
}
