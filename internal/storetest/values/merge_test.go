package values

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// A value of SetReader under operands that cannot be combined stays where it is, whatever is separated otherwise:
// flushes and compactions do not write it again.
func TestAValueUnderOperandsThatFailStaysWhereItIs(t *testing.T) {
	for _, from := range []int{-1, 100} {
		fsys := vfs.NewMem()
		merger := kv.NewMerger("no", func(_, _, _ []byte) ([]byte, error) { return nil, errors.New("no") })
		db, err := kv.Open("db", stores.With(harness.Harness{FS: fsys, MinStreamed: 10}, &kv.Options{SeparateFrom: from,
			Merger: merger}))
		require.NoError(t, err)
		stores.SetReader(t, db, "k", strings.Repeat("v", 5000), kv.NoSync)
		require.NoError(t, db.Merge([]byte("k"), []byte("x"), kv.NoSync))
		before := storetest.BlobsOnDisk(t, fsys, "db")
		require.Len(t, before, 1)
		require.NoError(t, db.Flush(t.Context()))
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.Equal(t, 1, storetest.RequireBlobs(t, db))
		require.Equal(t, before, storetest.BlobsOnDisk(t, fsys, "db"))
		_, err = db.Get([]byte("k"))
		require.ErrorIs(t, err, kv.ErrMergeFailed)
		require.NoError(t, db.Close())
	}
}

// A flush or compaction does not read a value for operands that takes more memory than MemoryLimit leaves to it.
func TestOperandsOverAValueThatIsLargeForTheMemory(t *testing.T) {
	t.Parallel()
	db, err := kv.Open("db", stores.With(harness.Harness{FS: vfs.NewMem()}, &kv.Options{MemoryLimit: 8 << 20,
		Merger: kv.Append(",")}))
	require.NoError(t, err)
	m := storetest.Model{"large": strings.Repeat("v", 600<<10) + ",x,y", "small": strings.Repeat("v", 300<<10) + ",x,y"}
	for k, v := range m {
		stores.SetReader(t, db, k, strings.TrimSuffix(v, ",x,y"), kv.NoSync)
		require.NoError(t, db.Flush(t.Context()))
	}
	for _, x := range []string{"x", "y"} {
		require.NoError(t, db.Merge([]byte("large"), []byte(x), kv.NoSync))
		require.NoError(t, db.Merge([]byte("small"), []byte(x), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Less(t, db.Metrics().Blobs.Read, uint64(400<<10), "the small one")
	require.Zero(t, db.Metrics().MergeFailures)
	storetest.RequireContents(t, m, db)
	require.NoError(t, db.Close())
}

// Operands over a value of SetReader that is longer than what Set takes are read with it. Compactions combine the
// operands with each other, and leave the value where it is, unread.
func TestOperandsOverAValueThatSetDoesNotTake(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	o := stores.With(harness.Harness{FS: fsys, MinStreamed: 10, MaxMerged: 1000}, &kv.Options{Merger: kv.Append(",")})
	db, err := kv.Open("db", o)
	require.NoError(t, err)
	m := storetest.Model{"before": "b", "k": strings.Repeat("v", 5000) + ",x,y,z", "later": "l"}
	stores.Set(t, db, "before", "b")
	stores.SetReader(t, db, "k", strings.Repeat("v", 5000), kv.NoSync)
	stores.Set(t, db, "later", "l")
	for _, x := range []string{"x", "y", "z"} {
		require.NoError(t, db.Merge([]byte("k"), []byte(x), kv.NoSync))
		require.NoError(t, db.Flush(t.Context()))
	}
	storetest.RequireContents(t, m, db)
	before, read := storetest.BlobsOnDisk(t, fsys, "db"), db.Metrics().Blobs.Read
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Equal(t, read, db.Metrics().Blobs.Read)
	require.Equal(t, before, storetest.BlobsOnDisk(t, fsys, "db"))
	require.Zero(t, db.Metrics().MergeFailures)
	require.EqualValues(t, 2, db.Metrics().OperandsMerged)
	storetest.RequireContents(t, m, db)
	require.NoError(t, db.Close())
}
