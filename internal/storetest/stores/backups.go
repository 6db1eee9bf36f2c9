package stores

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// BackUp returns the stream of a backup, and its mark after a round trip through its encoding.
func BackUp(t testing.TB, db *kv.DB, since kv.BackupMark) ([]byte, kv.BackupMark) {
	t.Helper()
	var b bytes.Buffer
	m, err := db.Backup(t.Context(), &b, since)
	require.NoError(t, err)
	verified, err := kv.VerifyBackup(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	require.Equal(t, m, verified)
	encoded, err := m.MarshalBinary()
	require.NoError(t, err)
	var again kv.BackupMark
	require.NoError(t, again.UnmarshalBinary(encoded))
	require.Equal(t, m, again)
	return b.Bytes(), again
}

// RequireRestoredAt checks a directory of a file system against a model at the time of a clock, without opening it for
// writing.
func RequireRestoredAt(t testing.TB, fsys vfs.FS, dir string, want storetest.Model, clock *storetest.Clock) {
	t.Helper()
	db, err := kv.Open(dir, With(harness.Harness{FS: fsys}, &kv.Options{ReadOnly: true, Clock: clock.Time}))
	require.NoError(t, err)
	storetest.RequireContents(t, want, db)
	require.NoError(t, storetest.Verify(db, io.Discard))
	require.NoError(t, db.Close())
}
