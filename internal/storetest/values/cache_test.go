package values

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// Lookups keep short values in the cache, within its size; scans and compactions pass it by, and what is removed
// leaves it.
func TestLargeValuesInTheCache(t *testing.T) {
	fsys := &vfstest.SlowReadFS{FS: vfs.NewMem(), Blobs: true}
	db, err := kv.Open("db", stores.With(harness.Harness{FS: fsys}, &kv.Options{SeparateFrom: 100, CacheSize: 1 << 20,
		BlockSize: 4 << 10}))
	require.NoError(t, err)
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 5000) }
	var keys [][]byte
	for i := range 300 {
		keys = append(keys, fmt.Appendf(nil, "key%03d", i))
		require.NoError(t, db.Set(keys[i], value(i), kv.NoSync))
	}
	require.NoError(t, db.Set([]byte("long"), make([]byte, 100<<10), kv.NoSync))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	scan := func() {
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		for ok := it.First(); ok; ok = it.Next() {
		}
		require.NoError(t, it.Close())
	}
	scan()
	before := db.Metrics().CacheBlocks
	scan()
	after := db.Metrics().CacheBlocks
	require.Equal(t, before, after, "scans pass it by")

	for round := range 3 {
		for _, k := range []int{7, 8, 9} {
			got, err := db.Get(keys[k])
			require.NoError(t, err)
			require.Equal(t, value(k), got)
		}
		_, err := db.Get([]byte("long"))
		require.NoError(t, err)
		hits := db.Metrics().Blobs.CacheHits
		require.EqualValues(t, max(0, 3*(round-1)), hits)
	}
	fsys.Reset()
	values, err := db.MultiGet(keys[7:9])
	require.NoError(t, err)
	require.Equal(t, [][]byte{value(7), value(8)}, values)
	require.Zero(t, fsys.Reads.Load())

	for range 3 {
		for i, k := range keys {
			got, err := db.Get(k)
			require.NoError(t, err)
			require.Equal(t, value(i), got)
		}
	}
	require.LessOrEqual(t, db.Metrics().CacheBytes, int64(1<<20))
	require.NoError(t, db.DeleteRange(nil, nil, nil))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Zero(t, storetest.RequireBlobs(t, db))
	require.Zero(t, db.Metrics().CacheBlocks, "what is removed leaves the cache")
	require.NoError(t, db.Close())
}
