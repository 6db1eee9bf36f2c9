package kv

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
	"github.com/siftkv/siftkv/sstable"
	"github.com/stretchr/testify/require"
)

// backUp returns the stream of a backup, and its mark after a round trip through its
// encoding.
func backUp(t *testing.T, db *DB, since BackupMark) ([]byte, BackupMark) {
	t.Helper()
	var b bytes.Buffer
	m, err := db.Backup(t.Context(), &b, since)
	require.NoError(t, err)
	verified, err := VerifyBackup(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	require.Equal(t, m, verified)
	encoded, err := m.MarshalBinary()
	require.NoError(t, err)
	var again BackupMark
	require.NoError(t, again.UnmarshalBinary(encoded))
	require.Equal(t, m, again)
	return b.Bytes(), again
}

// requireRestored checks a directory of a file system against a model, without
// opening it for writing.
func requireRestored(t *testing.T, fsys vfs.FS, dir string, want storetest.Model) {
	t.Helper()
	requireRestoredAt(t, fsys, dir, want, &storetest.Clock{})
}

func requireRestoredAt(t *testing.T, fsys vfs.FS, dir string, want storetest.Model, clock *storetest.Clock) {
	t.Helper()
	db, err := Open(dir, &Options{ReadOnly: true, harness: harness.Harness{FS: fsys}, Clock: clock.Time})
	require.NoError(t, err)
	requireContents(t, want, db)
	require.NoError(t, db.verify(io.Discard))
	require.NoError(t, db.Close())
}

// inTablesAndApart runs a test with values in tables, and with all of them in blob files.
func inTablesAndApart(t *testing.T, test func(t *testing.T, from int)) {
	for name, from := range map[string]int{"in tables": 0, "apart": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, from)
		})
	}
}

// backupStoreFrom makes a store of several tables, with values from a size on apart, and returns it with what it holds.
func backupStoreFrom(t *testing.T, from int) (*DB, storetest.Model) {
	t.Helper()
	db, err := Open("db", &Options{harness: harness.Harness{FS: vfs.NewMem()}, Compression: sstable.NoCompression,
		L0CompactionThreshold: 100,
		L0SlowdownThreshold:   200, L0StopThreshold: 300, SeparateFrom: from})
	require.NoError(t, err)
	closeAtEnd(t, db)
	return db, addTables(t, db, storetest.Model{}, "first", 3)
}

// addTables adds tables to a store, each with a key of its own and one of all, and
// deletes what was under the name before.
func addTables(t *testing.T, db *DB, m storetest.Model, name string, n int) storetest.Model {
	t.Helper()
	m = maps.Clone(m)
	for i := range n {
		for _, k := range []string{fmt.Sprintf("%s/%d", name, i), "all"} {
			m[k] = name + strconv.Itoa(i)
			set(t, db, k, m[k])
		}
		require.NoError(t, db.Delete([]byte("first/1"), nil))
		delete(m, "first/1")
		require.NoError(t, db.Flush(t.Context()))
	}
	return m
}

type writerFunc func([]byte) (int, error)

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

// A backup of a view in an object store leaves the store alone: the writer goes on, and nothing was put there.
func TestABackupOfAViewInAnObjectStore(t *testing.T) {
	t.Parallel()
	inTablesAndApart(t, testABackupOfAViewInAnObjectStore)
}

func testABackupOfAViewInAnObjectStore(t *testing.T, from int) {
	s, copied := objstore.NewMem(), objstore.NewMem()
	o := farOptions()
	o.SeparateFrom = from
	db := openObjects(t, s, o) // it flushes and compacts nothing by itself meanwhile
	want := storetest.Model{}
	for i := range 2000 {
		k := string(rune('a'+i%26)) + string(rune('a'+i/26%26))
		want[k] = string(bytes.Repeat([]byte{byte(i)}, 200))
		require.NoError(t, db.Set([]byte(k), []byte(want[k]), NoSync))
		if i%500 == 400 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	require.NoError(t, db.Set([]byte("in"), []byte("the log"), Sync))
	want["in"] = "the log"
	before := storetest.KeysOf(t, s)
	view, err := OpenReadOnly("", &Options{MemtableSize: 64 << 10, Objects: &objects.Config{Store: s}})
	require.NoError(t, err)
	r, w := io.Pipe()
	go func() {
		_, err := view.Backup(t.Context(), w, BackupMark{})
		_ = w.CloseWithError(err)
	}()
	require.NoError(t, Restore(t.Context(), r, "", &Options{Objects: &objects.Config{Store: copied}}))
	require.NoError(t, view.Close())
	require.Equal(t, before, storetest.KeysOf(t, s))
	requireInObjects(t, copied, want)
	require.NoError(t, db.Set([]byte("goes"), []byte("on"), Sync))
	require.NoError(t, db.Close())
	requireCollected(t, copied, want)
}

// What is damaged on its way out of an object store is asked for once more, and never backed up.
func TestABackupOutOfAnObjectStoreThatDamages(t *testing.T) {
	s := objstore.NewMem()
	o := farOptions()
	o.SeparateFrom, o.Compression = 100, sstable.NoCompression
	db := openObjects(t, s, o)
	want := storetest.Model{}
	for i := range 100 {
		k := fmt.Sprintf("key%03d", i)
		want[k] = string(bytes.Repeat([]byte{byte(i)}, 5000))
		require.NoError(t, db.Set([]byte(k), []byte(want[k]), NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	for _, always := range []bool{false, true} {
		faults := objstoretest.NewFaults(s, 1)
		var damaged atomic.Int64
		faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
			if c.Kind == objstore.Get && strings.HasSuffix(c.Key, ".blob") && c.Size > 100_000 {
				f.Corrupt = damaged.Add(1) == 1 || always
			}
			return f
		})
		view, err := OpenReadOnly("", &Options{MemtableSize: 64 << 10, Objects: &objects.Config{Store: faults}})
		require.NoError(t, err)
		var stream bytes.Buffer
		_, err = view.Backup(t.Context(), &stream, BackupMark{})
		require.Positive(t, damaged.Load())
		if always {
			require.ErrorIs(t, err, ErrCorruption)
			require.ErrorContains(t, err, ".blob")
		} else {
			require.NoError(t, err)
			disk := vfs.NewMem()
			require.NoError(t, Restore(t.Context(), &stream, "dir", &Options{harness: harness.Harness{FS: disk}}))
			requireRestored(t, disk, "dir", want)
		}
		require.NoError(t, view.Close())
	}
}

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
