package kv

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
	"github.com/siftkv/siftkv/sstable"
)

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

// Increments go on from backups of views, and end in those of the writer. Two views of one log cannot follow
// each other: the files that they make of it have the same number.
func TestBackupsOfViewsInAChain(t *testing.T) { inTablesAndApart(t, testBackupsOfViewsInAChain) }

func testBackupsOfViewsInAChain(t *testing.T, from int) {
	db, m := backupStoreFrom(t, from)
	var models []storetest.Model
	var streams [][]byte
	var mark BackupMark
	for i := range 4 {
		m = addTables(t, db, m, fmt.Sprint("round", i), 2)
		set(t, db, "in", fmt.Sprint("the log ", i))
		m["in"] = fmt.Sprint("the log ", i)
		view, err := OpenReadOnly("db", &Options{harness: harness.Harness{FS: db.fs}})
		require.NoError(t, err)
		stream, next := backUp(t, view, mark)
		_, err = view.Backup(t.Context(), io.Discard, next)
		require.ErrorIs(t, err, ErrBackupMismatch)
		require.NoError(t, view.Close())
		models, streams, mark = append(models, m), append(streams, stream), next
	}
	last, _ := backUp(t, db, mark)
	models, streams = append(models, m), append(streams, last)
	disk := vfs.NewMem()
	require.ErrorIs(t, Restore(t.Context(), bytes.NewReader(streams[1]), "dir",
		&Options{harness: harness.Harness{FS: disk}}), ErrBackupMismatch)
	for i, stream := range streams {
		require.NoError(t, Restore(t.Context(), bytes.NewReader(stream), "dir",
			&Options{harness: harness.Harness{FS: disk}}))
		requireRestored(t, disk, "dir", models[i])
	}
}
