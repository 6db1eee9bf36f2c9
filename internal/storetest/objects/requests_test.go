package objects

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
)

// What docs/object-storage.md says of requests.
func TestRequestsOfAStoreInAnObjectStore(t *testing.T) {
	t.Parallel()
	s := storetest.NewCountedStore()
	o := &kv.Options{MemtableSize: 64 << 20, TargetFileSize: 64 << 10, BaseLevelSize: 64 << 10, CacheSize: 32 << 10,
		SeparateFrom: -1}
	db := openObjects(t, s, o)
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
	const keys = 30_000
	for i := range keys {
		require.NoError(t, db.Set(key(i), fmt.Appendf(nil, "%0100d", i*i), kv.Async))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Equal(t, map[objstore.Kind]int64{objstore.PutIfAbsent: 1}, s.Requests(func() {
		require.NoError(t, db.Set(key(0), nil, kv.Sync))
	}))
	require.Equal(t, map[objstore.Kind]int64{objstore.Put: 1, objstore.PutIfAbsent: 1}, s.Requests(func() {
		require.NoError(t, db.Flush(t.Context()))
	}), "a flush of a file")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	files := int64(0)
	for _, l := range db.Metrics().Levels {
		files += int64(l.Files)
	}
	require.Greater(t, files, int64(20))
	require.NoError(t, db.Close())

	// The files, the newest entry, a LIST before the fence and one after it, the fence, and the check of conditions.
	opening := s.Requests(func() { db = openObjects(t, s, o) })
	require.Equal(t, map[objstore.Kind]int64{objstore.Get: files + 1, objstore.List: 2,
		objstore.PutIfAbsent: 2}, opening)

	const lookups = 3000
	absent := s.Requests(func() {
		for i := range lookups {
			ok, err := db.Has(append(key(i*keys/lookups), 'x'))
			require.NoError(t, err)
			require.False(t, ok)
		}
	})
	require.Less(t, absent[objstore.Get], int64(lookups/50), "1 % of absent keys pass a filter of 10 bits")
	present := s.Requests(func() {
		for i := range lookups {
			_, err := db.Get(key(i * keys / lookups))
			require.NoError(t, err)
		}
	})
	require.LessOrEqual(t, present[objstore.Get], int64(lookups))
	size := int64(0)
	for _, l := range db.Metrics().Levels {
		size += l.Bytes
	}
	scan := s.Requests(func() {
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			n++
		}
		require.Equal(t, keys, n)
		require.NoError(t, it.Close())
	})
	t.Logf("absent %v, present %v of %d, scan of %d bytes %v", absent, present, lookups, size, scan)
	require.LessOrEqual(t, scan[objstore.Get], 6*files, "a file is read in parts")
	require.Empty(t, s.Requests(func() { require.NoError(t, db.Set(key(1), nil, kv.Async)) }))
	require.NoError(t, db.Close())
}

// What was settled costs nothing but a fence to open and close, and a poll of it is one GET.
func TestRequestsOfWhoDoesNothing(t *testing.T) {
	s := storetest.NewCountedStore()
	db, _ := objectsWith(t, s, 100)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Equal(t, map[objstore.Kind]int64{objstore.PutIfAbsent: 1}, s.Requests(func() {
		require.NoError(t, db.Close())
	}), "the end of the log is in the list of files")
	before := bucket(t, s.Store)
	for range 3 {
		db = openObjects(t, s, nil)
		require.Empty(t, s.Requests(func() { require.NoError(t, db.Close()) }))
	}
	after := bucket(t, s.Store)
	require.Len(t, after, len(before)+3)
	for key, o := range after {
		if o.size == fenceSize {
			continue
		}
		require.Equal(t, before[key], o)
	}

	db = openObjects(t, s, nil)
	var view *kv.DB
	require.Equal(t, map[objstore.Kind]int64{objstore.List: 1, objstore.Get: 2}, s.Requests(func() {
		view = openObjectsReader(t, s)
	}), "the newest entry, and the file")
	poll := func(want map[objstore.Kind]int64) {
		t.Helper()
		require.Equal(t, want, s.Requests(func() { require.NoError(t, view.Refresh(t.Context())) }))
	}
	poll(map[objstore.Kind]int64{objstore.Get: 1})
	poll(map[objstore.Kind]int64{objstore.Get: 1})
	require.NoError(t, db.Set([]byte("key"), nil, kv.Sync))
	poll(map[objstore.Kind]int64{objstore.Get: 2})
	for range 20 {
		require.NoError(t, db.Set([]byte("key"), nil, kv.Sync))
	}
	poll(map[objstore.Kind]int64{objstore.Get: 21, objstore.List: 1})
	harness.ObjectDir(view).(objectdir.Directory).LookAgain()
	poll(map[objstore.Kind]int64{objstore.List: 1})
	require.NoError(t, view.Close())
	require.Equal(t, map[objstore.Kind]int64{objstore.PutIfAbsent: 2}, s.Requests(func() {
		require.NoError(t, db.Close())
	}), "the end of the log, and the list of files")
}
