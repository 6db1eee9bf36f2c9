package backups

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// Values that SetReader wrote are in backups of the writer, and of views of which they are in the log alone.
func TestBackupsOfStreamedValues(t *testing.T) {
	fsys := vfs.NewMem()
	db, err := kv.Open("db", stores.With(harness.Harness{FS: fsys, MinStreamed: 1000}, &kv.Options{}))
	require.NoError(t, err)
	m := storetest.Model{"first": string(bytes.Repeat([]byte("1"), 5000)), "short": "value"}
	stores.Set(t, db, "short", "value")
	require.NoError(t, db.SetReader(t.Context(), []byte("first"), 5000, bytes.NewReader([]byte(m["first"])), kv.Sync))
	requireBacked := func(db *kv.DB, mark kv.BackupMark, o *kv.Options) kv.BackupMark {
		t.Helper()
		stream, next := stores.BackUp(t, db, mark)
		require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(stream), "dir", o))
		stores.RequireRestored(t, harness.Of(o).FS, "dir", m)
		return next
	}
	view, err := kv.OpenReadOnly("db", stores.With(harness.Harness{FS: fsys}, &kv.Options{}))
	require.NoError(t, err)
	storetest.RequireContents(t, m, view)
	chain := stores.With(harness.Harness{FS: vfs.NewMem()}, &kv.Options{})
	mark := requireBacked(view, kv.BackupMark{}, chain)
	require.NoError(t, view.Close())
	requireBacked(db, kv.BackupMark{}, stores.With(harness.Harness{FS: vfs.NewMem()}, &kv.Options{}))
	m["second"] = string(bytes.Repeat([]byte("2"), 9000))
	require.NoError(t, db.SetReader(t.Context(), []byte("second"), 9000, bytes.NewReader([]byte(m["second"])), kv.Sync))
	requireBacked(db, mark, chain)
	require.NoError(t, db.Close())
}
