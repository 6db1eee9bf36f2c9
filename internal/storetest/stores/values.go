package stores

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// Separated makes the store "db" on a file system, with what storetest.WriteSeparated writes: values of at least 100
// bytes are in several blob files. It returns the store's clock and what it holds too.
func Separated(t testing.TB, fsys vfs.FS) (*kv.DB, *storetest.Clock, storetest.Model) {
	t.Helper()
	clock := &storetest.Clock{}
	db := OpenDir(t, "db", With(harness.Harness{FS: fsys, BlobSize: 20 << 10}, &kv.Options{SeparateFrom: 100,
		Merger: kv.Append(","), L0CompactionThreshold: 100, Clock: clock.Time, BlockSize: 300,
		Compression: sstable.NoCompression}))
	m := storetest.WriteSeparated(t, db, kv.NoSync)
	require.Greater(t, storetest.RequireBlobs(t, db), 3)
	return db, clock, m
}

// RequireSeparated requires that each kind of lookup in a store, and its iterators, give what storetest.WriteSeparated
// wrote and a model has.
func RequireSeparated(t testing.TB, db *kv.DB, m storetest.Model) {
	t.Helper()
	storetest.RequireContents(t, m, db)
	var keys [][]byte
	for i := range 61 {
		k := fmt.Sprintf("key%03d", i)
		keys = append(keys, []byte(k))
		v, ok := m[k]
		has, err := db.Has([]byte(k))
		require.NoError(t, err)
		require.Equal(t, ok, has, k)
		if !ok {
			continue
		}
		size, err := db.GetSize([]byte(k))
		require.NoError(t, err)
		require.Equal(t, len(v), size)
		for _, room := range []int{0, 3, 5000} {
			got, err := db.AppendGet(append(make([]byte, 0, room), "x"...), []byte(k))
			require.NoError(t, err)
			require.True(t, "x"+v == string(got))
		}
	}
	values, err := db.MultiGet(append(keys, keys...))
	require.NoError(t, err)
	for i, v := range values {
		want, ok := m[string(keys[i%len(keys)])]
		require.Equal(t, ok, v != nil)
		require.True(t, want == string(v), "%s", keys[i%len(keys)])
	}
}

// SetReader stores a value by DB.SetReader.
func SetReader(t testing.TB, db *kv.DB, k, v string, o *kv.WriteOptions) {
	t.Helper()
	require.NoError(t, db.SetReader(t.Context(), []byte(k), int64(len(v)), strings.NewReader(v), o))
}
