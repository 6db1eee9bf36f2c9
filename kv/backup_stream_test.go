package kv

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Values that SetReader wrote are in backups of the writer, and of views of which they are in the log alone.
func TestBackupsOfStreamedValues(t *testing.T) {
	fsys := vfs.NewMem()
	db, err := Open("db", &Options{harness: harness.Harness{FS: fsys, MinStreamed: 1000}})
	require.NoError(t, err)
	m := storetest.Model{"first": string(bytes.Repeat([]byte("1"), 5000)), "short": "value"}
	set(t, db, "short", "value")
	require.NoError(t, db.SetReader(t.Context(), []byte("first"), 5000, bytes.NewReader([]byte(m["first"])), Sync))
	requireBacked := func(db *DB, mark BackupMark, o *Options) BackupMark {
		t.Helper()
		stream, next := backUp(t, db, mark)
		require.NoError(t, Restore(t.Context(), bytes.NewReader(stream), "dir", o))
		requireRestored(t, o.harness.FS, "dir", m)
		return next
	}
	view, err := OpenReadOnly("db", &Options{harness: harness.Harness{FS: fsys}})
	require.NoError(t, err)
	requireContents(t, m, view)
	chain := &Options{harness: harness.Harness{FS: vfs.NewMem()}}
	mark := requireBacked(view, BackupMark{}, chain)
	require.NoError(t, view.Close())
	requireBacked(db, BackupMark{}, &Options{harness: harness.Harness{FS: vfs.NewMem()}})
	m["second"] = string(bytes.Repeat([]byte("2"), 9000))
	require.NoError(t, db.SetReader(t.Context(), []byte("second"), 9000, bytes.NewReader([]byte(m["second"])), Sync))
	requireBacked(db, mark, chain)
	require.NoError(t, db.Close())
}
