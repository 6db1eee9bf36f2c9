package objects

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// objectsWith returns a store in an object store with some keys, and what it has.
func objectsWith(t *testing.T, s objstore.Store, keys int) (*kv.DB, storetest.Model) {
	t.Helper()
	db := openObjects(t, s, nil)
	want := storetest.Model{}
	for i := range keys {
		k, v := fmt.Sprintf("%05d", i), fmt.Sprintf("%0100d", i*i)
		require.NoError(t, db.Set([]byte(k), []byte(v), kv.Async))
		want[k] = v
	}
	return db, want
}

// Other directories than the store's are on the disk.
func TestAStoreMovesBetweenObjectStoreAndDisk(t *testing.T) {
	t.Parallel()
	db, want := objectsWith(t, objstore.NewMem(), 3000)
	checkpoint := filepath.Join(t.TempDir(), "checkpoint")
	require.NoError(t, db.Checkpoint(t.Context(), checkpoint))
	require.Error(t, db.Checkpoint(t.Context(), checkpoint), "there is one")
	local := stores.OpenDir(t, checkpoint, nil)
	storetest.RequireContents(t, want, local)
	require.NoError(t, local.Close())

	var stream bytes.Buffer
	_, err := db.Backup(t.Context(), &stream, kv.BackupMark{})
	require.NoError(t, err)
	restored := filepath.Join(t.TempDir(), "restored")
	require.NoError(t, kv.Restore(t.Context(), &stream, restored, nil))
	local = stores.OpenDir(t, restored, nil)
	storetest.RequireContents(t, want, local)
	require.NoError(t, local.Close())

	file := filepath.Join(t.TempDir(), "new.sst")
	storetest.IngestFile(t, vfs.OS, file, nil, "zz=ingested")
	require.NoError(t, db.Ingest(t.Context(), []string{file}, nil))
	_, err = db.Get([]byte("zz"))
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// What is read of sorted files stays on the local disk, and nothing is lost with it.
func TestTheCacheOfAStoreInAnObjectStore(t *testing.T) {
	t.Parallel()
	s := storetest.NewCountedStore()
	db, want := objectsWith(t, s, 3000)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, db.Close())
	dir := filepath.Join(t.TempDir(), "cache")
	o := &kv.Options{CacheSize: -1, Objects: &objects.Config{Store: s, CacheSize: 64 << 20}}
	_, err := kv.Open("", o)
	require.ErrorIs(t, err, kv.ErrInvalidOptions)
	reads := func() int64 {
		needed := s.Requests(func() {
			db, err := kv.Open(dir, o)
			require.NoError(t, err)
			for k, v := range want {
				got, err := db.Get([]byte(k))
				require.NoError(t, err)
				require.Equal(t, v, string(got))
			}
			require.NoError(t, db.Close())
		})
		return needed[objstore.Get]
	}
	first := reads()
	require.Less(t, first, int64(len(want)), "a page has many blocks")
	for reads() == first { // it outlives the process, and is found in the background
	}
	require.NoError(t, os.RemoveAll(dir))
	require.Equal(t, first, reads())
}
