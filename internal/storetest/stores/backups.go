package stores

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
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

// RequireRestored checks a directory of a file system against a model, without opening it for writing.
func RequireRestored(t testing.TB, fsys vfs.FS, dir string, want storetest.Model) {
	t.Helper()
	RequireRestoredAt(t, fsys, dir, want, &storetest.Clock{})
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

// InTablesAndSeparated runs a test with values in tables, and with all of them in blob files. Values of at least from
// bytes are separated.
func InTablesAndSeparated(t *testing.T, test func(t *testing.T, from int)) {
	for name, from := range map[string]int{"in tables": 0, "separated": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, from)
		})
	}
}

// OfTables makes the store "db" of several tables, in memory, and returns it with what it holds. Nothing is compacted
// by itself. Values of at least from bytes are separated.
func OfTables(t testing.TB, from int) (*kv.DB, storetest.Model) {
	t.Helper()
	db := OpenWriter(t, "db", With(harness.Harness{FS: vfs.NewMem()}, &kv.Options{Compression: sstable.NoCompression,
		L0CompactionThreshold: 100, L0SlowdownThreshold: 200, L0StopThreshold: 300, SeparateFrom: from}))
	return db, AddTables(t, db, storetest.Model{}, "first", 3)
}

// AddTables adds n tables to a store, each with a key of its own and one of all, deletes "first/1", and returns what
// the store holds then.
func AddTables(t testing.TB, db *kv.DB, m storetest.Model, name string, n int) storetest.Model {
	t.Helper()
	m = maps.Clone(m)
	for i := range n {
		for _, k := range []string{fmt.Sprintf("%s/%d", name, i), "all"} {
			m[k] = name + strconv.Itoa(i)
			Set(t, db, k, m[k])
		}
		require.NoError(t, db.Delete([]byte("first/1"), nil))
		delete(m, "first/1")
		require.NoError(t, db.Flush(t.Context()))
	}
	return m
}
