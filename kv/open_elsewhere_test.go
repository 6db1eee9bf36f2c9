package kv

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A store that was opened by a relative name stays where it is when the process goes to a directory that has another
// store of that name: neither loses anything.
func TestAStoreStaysWhereItIsWhenTheProcessGoesElsewhere(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	other := openDir(t, filepath.Join(there, "data"), nil)
	set(t, other, "other", "1")
	require.NoError(t, other.Close())
	before := readDir(t, there)

	bucket, err := objstore.OpenDir(filepath.Join(t.TempDir(), "objects"))
	require.NoError(t, err)
	for name, o := range map[string]*Options{
		"directory":    {MemtableSize: 64 << 10},
		"object store": {MemtableSize: 64 << 10, Objects: &objects.Config{Store: bucket, CacheSize: 1 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(here)
			db, err := Open("data", o)
			require.NoError(t, err)
			t.Chdir(there)
			for i := range 2000 {
				set(t, db, strconv.Itoa(i), "of the first store, long enough to fill some memtables")
			}
			require.NoError(t, db.Flush(t.Context()))
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			require.NoError(t, db.Close())
			require.True(t, maps.Equal(before, readDir(t, there)), "nothing was written elsewhere")
			t.Chdir(here)
			db, err = Open("data", o)
			require.NoError(t, err)
			_, err = db.Get([]byte("1999"))
			require.NoError(t, err)
			require.NoError(t, db.Close())
			require.NoError(t, os.RemoveAll("data"))
		})
	}
}
