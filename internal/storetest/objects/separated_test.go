package objects

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/remote"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
	"github.com/siftkv/siftkv/sstable"
)

const separatedKeys = 40

func separatedValue(i int) string {
	return strings.Repeat(fmt.Sprint(i, ","), 1<<20)[:100+i*i*i] // up to 60 KB
}

// separatedObjects has a store of two tables and some blob files. All its values are separated.
func separatedObjects(t testing.TB, s objstore.Store, o kv.Options) (db *kv.DB, want storetest.Model) {
	t.Helper()
	o.SeparateFrom, harness.Of(&o).BlobSize, o.L0CompactionThreshold = 100, 200<<10, 100
	o.Compression = sstable.NoCompression
	db, want = openObjects(t, s, &o), storetest.Model{}
	for i := range separatedKeys {
		k := fmt.Sprintf("%03d", i)
		want[k] = separatedValue(i)
		require.NoError(t, db.Set([]byte(k), []byte(want[k]), kv.Async))
		if i == separatedKeys/2 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	require.NoError(t, db.Flush(t.Context()))
	return db, want
}

// A separated value costs one request beyond those of a table, of exactly its record. What needs no value costs
// none.
func TestASeparatedValueIsOneRequest(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of requests")
	s := storetest.NewCountedStore()
	o := kv.Options{CacheSize: -1, MemtableSize: 64 << 20, FalsePositiveMemory: -1}
	db, want := separatedObjects(t, s, o)
	require.Greater(t, len(storetest.BlobsIn(t, s)), 2)
	require.NoError(t, db.Close())
	o.SeparateFrom = 100
	opening := s.Requests(func() { db = openObjects(t, s, &o) })
	require.EqualValues(t, 2+1, opening[objstore.Get], "the tables, and the newest entry: none of a blob file")
	for i := range separatedKeys {
		key := fmt.Appendf(nil, "%03d", i)
		for what, c := range map[string]struct {
			gets int64
			do   func() error
		}{
			"Has":     {1, func() error { _, err := db.Has(key); return err }},
			"GetSize": {1, func() error { _, err := db.GetSize(key); return err }},
			"Get": {2, func() error {
				v, err := db.Get(key)
				require.True(t, want[string(key)] == string(v))
				return err
			}},
			"AppendGet": {2, func() error { _, err := db.AppendGet(make([]byte, 0, 1<<17), key); return err }},
			"absent": {0, func() error {
				_, err := db.Get(append(key, "absent"...))
				require.ErrorIs(t, err, kv.ErrNotFound)
				return nil
			}},
		} {
			before := s.Counters.Snapshot()
			require.NoError(t, c.do())
			got := s.Counters.Snapshot().Minus(before)[objstore.Get]
			if what == "absent" {
				require.LessOrEqual(t, got.Requests, int64(1), "a filter may let it pass")
				continue
			}
			require.Equal(t, c.gets, got.Requests, what)
			if c.gets == 2 {
				require.Less(t, got.Bytes, int64(len(separatedValue(i)))+8<<10, "a block, and a record")
			}
		}
	}
	require.Equal(t, map[objstore.Kind]int64{objstore.Put: 2, objstore.PutIfAbsent: 1}, s.Requests(func() {
		require.NoError(t, db.Set([]byte("one more"), make([]byte, 1000), kv.Async))
		require.NoError(t, db.Flush(t.Context()))
	}), "a flush puts a blob file, a table, and the list of both")
	require.NoError(t, db.Close())
}

// Keys that are looked up together have all their values in one round trip more.
func TestManySeparatedValuesAreFetchedSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, o := newRemoteStore(), remoteOptions()
		db, want := separatedObjects(t, s, *o)
		var keys [][]byte
		for i := range separatedKeys {
			keys = append(keys, fmt.Appendf(nil, "%03d", i))
		}
		var got [][]byte
		gets, trips := s.costs(func() {
			var err error
			got, err = db.MultiGet(keys)
			require.NoError(t, err)
		})
		for i, key := range keys {
			require.True(t, want[string(key)] == string(got[i]))
		}
		require.LessOrEqual(t, gets, 2*separatedKeys)
		require.Equal(t, 2, trips)
		require.NoError(t, db.Close())
	})
}

// Whatever is wrong with a blob file is told with its name, where in it, and if it is gone, which object; all other
// values are read.
func TestDamageOfABlobFileInAnObjectStore(t *testing.T) {
	s := objstore.NewMem()
	db, want := separatedObjects(t, s, kv.Options{CacheSize: -1})
	require.NoError(t, db.Close())
	victim := storetest.BlobsIn(t, s)[0]
	body, err := objstore.ReadAll(t.Context(), s, victim, 1<<20)
	require.NoError(t, err)
	num, _, _ := strings.Cut(strings.TrimPrefix(victim, "sst/"), "-")
	for what, c := range map[string]struct {
		spoil func()
		is    error
		says  string
	}{
		"flipped": {func() {
			b := bytes.Clone(body)
			for i := range b[64:] {
				b[64+i] ^= 1
			}
			require.NoError(t, s.Put(t.Context(), victim, bytes.NewReader(b), int64(len(b))))
		}, kv.ErrCorruption, num + ".blob"},
		"cut short": {func() {
			require.NoError(t, s.Put(t.Context(), victim, bytes.NewReader(body[:40]), 40))
		}, kv.ErrCorruption, num + ".blob"},
		"missing": {func() { require.NoError(t, s.Delete(t.Context(), victim)) }, fs.ErrNotExist, victim},
	} {
		c.spoil()
		db := openObjects(t, s, &kv.Options{CacheSize: -1})
		failed := 0
		for k, v := range want {
			got, err := db.Get([]byte(k))
			if err == nil {
				require.True(t, v == string(got), k)
				continue
			}
			failed++
			require.ErrorIs(t, err, c.is, what)
			require.ErrorContains(t, err, c.says, what)
			require.ErrorContains(t, err, "offset", what)
			has, err := db.Has([]byte(k))
			require.NoError(t, err)
			require.True(t, has)
		}
		require.Positive(t, failed, what)
		require.Less(t, failed, len(want), what)
		require.Error(t, storetest.Verify(db, &strings.Builder{}), what)
		require.NoError(t, db.Close())
	}
}

// A reply that was damaged on its way is requested again.
func TestAReplyWithAValueThatWasDamagedOnItsWay(t *testing.T) {
	mem := objstore.NewMem()
	db, want := separatedObjects(t, mem, kv.Options{})
	require.NoError(t, db.Close())
	faults := objstoretest.NewFaults(mem, 1)
	db = openObjects(t, faults, &kv.Options{CacheSize: -1})
	type request struct {
		key  string
		size int64
	}
	var mu sync.Mutex
	seen := map[request]bool{} // a repeated request is of the same size
	faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		mu.Lock()
		defer mu.Unlock()
		if r := (request{c.Key, c.Size}); strings.HasSuffix(c.Key, ".blob") {
			f.Corrupt, seen[r] = !seen[r], true
		}
		return f
	})
	storetest.RequireContents(t, want, db)
	require.Greater(t, len(seen), 10)
	require.NoError(t, db.Close())
}

// From an object store to a directory and on from there, with all values.
func TestACheckpointOfSeparatedValuesInAnObjectStore(t *testing.T) {
	s := objstore.NewMem()
	db, want := separatedObjects(t, s, kv.Options{})
	dir := filepath.Join(t.TempDir(), "checkpoint")
	require.NoError(t, db.Checkpoint(t.Context(), dir))
	require.NoError(t, db.Close())
	local := stores.OpenDir(t, dir, nil)
	require.Positive(t, storetest.RequireBlobs(t, local))
	storetest.RequireContents(t, want, local)
	require.NoError(t, storetest.Verify(local, &strings.Builder{}))
	require.NoError(t, local.Close())
}

// What was read of values stays on the local disk, also of long ones.
func TestTheCacheOnDiskHasSeparatedValues(t *testing.T) {
	s := storetest.NewCountedStore()
	db := openObjects(t, s, &kv.Options{SeparateFrom: 1})
	rng := rand.New(rand.NewPCG(1, 2))
	want := storetest.Model{}
	for _, size := range []int{10, 1000, 16 << 10, 100 << 10, 200 << 10, 900 << 10} {
		k := fmt.Sprintf("%07d", size)
		want[k] = string(storetest.RandomBytes(rng, size))
		require.NoError(t, db.Set([]byte(k), []byte(want[k]), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	dir := t.TempDir()
	reads := func() int64 {
		needed := s.Requests(func() {
			db, err := kv.Open(dir, &kv.Options{CacheSize: -1, Objects: &objects.Config{Store: s, CacheSize: 64 << 20}})
			require.NoError(t, err)
			cache := harness.ObjectDir(db).(*remote.FS)
			cache.FlushCache() // it has found what was there
			for k, v := range want {
				got, err := db.Get([]byte(k))
				require.NoError(t, err)
				require.True(t, v == string(got))
			}
			cache.FlushCache()
			require.NoError(t, db.Close())
		})
		return needed[objstore.Get]
	}
	require.GreaterOrEqual(t, reads(), int64(5))
	require.LessOrEqual(t, reads(), int64(2), "the entry, and the table's end, which is read before the cache is ready")
}

// Compactions copy values from blob files that are mostly garbage in parts, not one by one.
func TestCompactionsReadBlobFilesInParts(t *testing.T) {
	t.Parallel()
	s := objstoretest.NewFaults(objstore.NewMem(), 1)
	db := openObjects(t, s, &kv.Options{SeparateFrom: 1000, MemtableSize: 64 << 20})
	rng := rand.New(rand.NewPCG(7, 7))
	want := storetest.Model{}
	put := func(i int) {
		k := fmt.Sprintf("%03d", i)
		want[k] = string(storetest.RandomBytes(rng, 16<<10))
		require.NoError(t, db.Set([]byte(k), []byte(want[k]), kv.Async))
	}
	const values = 300
	for i := range values {
		put(i)
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	for i := range values {
		if i%3 > 0 {
			put(i)
		}
	}
	var gets atomic.Int64
	s.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.Kind == objstore.Get && strings.HasSuffix(c.Key, ".blob") {
			gets.Add(1)
		}
		return f
	})
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	harness.Settle(db)
	require.GreaterOrEqual(t, db.Metrics().Blobs.Relocated, uint64(values/3*16<<10))
	require.Positive(t, gets.Load())
	require.Less(t, gets.Load(), int64(20), "each value was one or two")
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
}
