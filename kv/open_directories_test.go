package kv

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// What was durable is there although nothing else of the disk is: the names of
// all directories too.
func TestNewDirectoriesOutliveAPowerCut(t *testing.T) {
	mem := vfs.NewCrashableMem()
	open := func(mem *vfs.MemFS, dir string) *DB {
		db, err := Open(dir, &Options{fs: newCrashFS(mem, nothing)})
		require.NoError(t, err)
		return db
	}
	db := open(mem, "a/b/store")
	require.NoError(t, db.Set([]byte("k"), []byte("v"), Sync))
	require.NoError(t, db.Checkpoint(t.Context(), "c/d/copy"))
	disk := mem.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, db.Close())
	for _, dir := range []string{"a/b/store", "c/d/copy"} {
		db := open(disk, dir)
		requireContents(t, model{"k": "v"}, db)
		require.NoError(t, db.Close())
	}
}
