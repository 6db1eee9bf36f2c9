package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
)

// What was durable is there although nothing else of the disk is: the names of
// all directories too.
func TestNewDirectoriesOutliveAPowerCut(t *testing.T) {
	mem := crashfs.NewDisk()
	open := func(mem *crashfs.Disk, dir string) *DB {
		db, err := Open(dir, &Options{harness: harness.Harness{FS: crashfs.New(mem, nothing)}})
		require.NoError(t, err)
		return db
	}
	db := open(mem, "a/b/store")
	require.NoError(t, db.Set([]byte("k"), []byte("v"), Sync))
	require.NoError(t, db.Checkpoint(t.Context(), "c/d/copy"))
	disk := mem.CutTo(0, nil)
	require.NoError(t, db.Close())
	for _, dir := range []string{"a/b/store", "c/d/copy"} {
		db := open(disk, dir)
		requireContents(t, storetest.Model{"k": "v"}, db)
		require.NoError(t, db.Close())
	}
}
