package powercuts

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/kv"
)

// What was durable is there although nothing else of the disk is: the names of
// all directories too.
func TestNewDirectoriesOutliveAPowerCut(t *testing.T) {
	mem := crashfs.NewDisk()
	open := func(mem *crashfs.Disk, dir string) *kv.DB {
		db, err := kv.Open(dir, stores.With(harness.Harness{FS: crashfs.New(mem, storetest.Nothing)}, &kv.Options{}))
		require.NoError(t, err)
		return db
	}
	db := open(mem, "a/b/store")
	require.NoError(t, db.Set([]byte("k"), []byte("v"), kv.Sync))
	require.NoError(t, db.Checkpoint(t.Context(), "c/d/copy"))
	disk := mem.CutTo(0, nil)
	require.NoError(t, db.Close())
	for _, dir := range []string{"a/b/store", "c/d/copy"} {
		db := open(disk, dir)
		storetest.RequireContents(t, storetest.Model{"k": "v"}, db)
		require.NoError(t, db.Close())
	}
}
