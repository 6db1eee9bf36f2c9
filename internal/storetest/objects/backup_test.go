package objects

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
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
	"github.com/siftkv/siftkv/sstable"
)

// A backup of a view in an object store leaves the store alone: the writer goes on, and nothing was put there.
func TestABackupOfAViewInAnObjectStore(t *testing.T) {
	t.Parallel()
	stores.InTablesAndSeparated(t, testABackupOfAViewInAnObjectStore)
}

func testABackupOfAViewInAnObjectStore(t *testing.T, from int) {
	s, copied := objstore.NewMem(), objstore.NewMem()
	o := remoteOptions()
	o.SeparateFrom = from
	db := openObjects(t, s, o) // it flushes and compacts nothing by itself meanwhile
	want := storetest.Model{}
	for i := range 2000 {
		k := string(rune('a'+i%26)) + string(rune('a'+i/26%26))
		want[k] = string(bytes.Repeat([]byte{byte(i)}, 200))
		require.NoError(t, db.Set([]byte(k), []byte(want[k]), kv.NoSync))
		if i%500 == 400 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	require.NoError(t, db.Set([]byte("in"), []byte("the log"), kv.Sync))
	want["in"] = "the log"
	before := storetest.KeysOf(t, s)
	view, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: &objects.Config{Store: s}})
	require.NoError(t, err)
	r, w := io.Pipe()
	go func() {
		_, err := view.Backup(t.Context(), w, kv.BackupMark{})
		_ = w.CloseWithError(err)
	}()
	require.NoError(t, kv.Restore(t.Context(), r, "", &kv.Options{Objects: &objects.Config{Store: copied}}))
	require.NoError(t, view.Close())
	require.Equal(t, before, storetest.KeysOf(t, s))
	requireInObjects(t, copied, want)
	require.NoError(t, db.Set([]byte("goes"), []byte("on"), kv.Sync))
	require.NoError(t, db.Close())
	requireCollected(t, copied, want)
}

// What is damaged on its way out of an object store is asked for once more, and never backed up.
func TestABackupOutOfAnObjectStoreThatDamages(t *testing.T) {
	s := objstore.NewMem()
	o := remoteOptions()
	o.SeparateFrom, o.Compression = 100, sstable.NoCompression
	db := openObjects(t, s, o)
	want := storetest.Model{}
	for i := range 100 {
		k := fmt.Sprintf("key%03d", i)
		want[k] = string(bytes.Repeat([]byte{byte(i)}, 5000))
		require.NoError(t, db.Set([]byte(k), []byte(want[k]), kv.NoSync))
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
		view, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: &objects.Config{Store: faults}})
		require.NoError(t, err)
		var stream bytes.Buffer
		_, err = view.Backup(t.Context(), &stream, kv.BackupMark{})
		require.Positive(t, damaged.Load())
		if always {
			require.ErrorIs(t, err, kv.ErrCorruption)
			require.ErrorContains(t, err, ".blob")
		} else {
			require.NoError(t, err)
			disk := vfs.NewMem()
			o := stores.With(harness.Harness{FS: disk}, &kv.Options{})
			require.NoError(t, kv.Restore(t.Context(), &stream, "dir", o))
			stores.RequireRestored(t, disk, "dir", want)
		}
		require.NoError(t, view.Close())
	}
}
