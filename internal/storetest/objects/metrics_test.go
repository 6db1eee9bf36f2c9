package objects

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/remote"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/metrics"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// Metrics of a store in an object store tell what was asked of that, what came of it, and what the writer has.
func TestMetricsOfAStoreInAnObjectStore(t *testing.T) {
	t.Parallel()
	faults := objstoretest.NewFaults(objstore.NewMem(), 1)
	dir := t.TempDir()
	open := func() *kv.DB {
		db, err := kv.Open(dir, &kv.Options{BlockSize: 1 << 10, CacheSize: -1,
			Objects: &objects.Config{Store: faults, CacheSize: 8 << 20, LogInterval: time.Hour}})
		require.NoError(t, err)
		return db
	}
	db := open()
	since := func(do func()) metrics.Objects {
		before := db.Metrics()
		do()
		return db.Metrics().Sub(before).Objects
	}
	entries := db.Metrics().Objects.EntriesSinceList
	set := since(func() { require.NoError(t, db.Set([]byte("key"), make([]byte, 1000), kv.Sync)) })
	require.Equal(t, objstore.Count{Calls: 1, Requests: 1, Bytes: set.Requests[objstore.PutIfAbsent].Bytes},
		set.Requests[objstore.PutIfAbsent])
	require.Greater(t, set.Requests[objstore.PutIfAbsent].Bytes, int64(1000))
	require.EqualValues(t, 1, set.Requests.Total().Calls)
	require.Equal(t, entries+1, set.EntriesSinceList)

	for i := range 1000 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "%06d", i), make([]byte, 100), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.Zero(t, db.Metrics().Objects.EntriesSinceList)
	read := func() {
		for i := range 1000 {
			_, err := db.Get(fmt.Appendf(nil, "%06d", i))
			require.NoError(t, err)
		}
		harness.ObjectDir(db).(*remote.FS).FlushCache()
	}
	cold := since(read)
	require.Positive(t, cold.DiskCacheMisses)
	require.Positive(t, cold.DiskCacheBytes)
	require.Positive(t, cold.Requests[objstore.Get].Bytes)
	warm := since(read)
	require.Zero(t, warm.DiskCacheMisses)
	require.GreaterOrEqual(t, warm.DiskCacheHits, uint64(50))
	require.Positive(t, warm.DiskCacheHitBytes)
	require.Zero(t, warm.Requests.Total())

	faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		if isPut(c) && c.Nth == 1 {
			f.Outcome = objstoretest.LostReply
		}
		return f
	})
	unknown := since(func() { require.NoError(t, db.Set([]byte("key"), nil, kv.Sync)) })
	require.EqualValues(t, 1, unknown.Requests[objstore.PutIfAbsent].Unknown)
	require.EqualValues(t, 1, unknown.Requests[objstore.PutIfAbsent].Failed)
	faults.Inject(noFault)

	epoch := db.Metrics().Objects.Epoch
	next := open()
	require.Greater(t, next.Metrics().Objects.Epoch, epoch)
	require.NoError(t, next.Close())
	require.ErrorIs(t, db.Set([]byte("key"), nil, kv.Sync), objects.ErrFenced)
	require.Error(t, db.Close())
	require.Positive(t, db.Metrics().Objects.Requests.Total().Calls, "it is closed, and has counted")
	view := openObjectsReader(t, faults)
	require.Positive(t, view.Metrics().Objects.Requests[objstore.Get].Calls)
	require.Zero(t, view.Metrics().Objects.Epoch)
	require.NoError(t, view.Close())

	names, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, name := range names {
		storetest.Rewrite(t, name, func(b []byte) []byte {
			for at := 700; at < len(b); at += 3000 {
				b[at] ^= 1
			}
			return b
		})
	}
	db = open()
	harness.ObjectDir(db).(*remote.FS).FlushCache() // what the directory has is found in the background
	read()
	require.Positive(t, db.Metrics().Objects.DiskCacheDamaged)
	require.NoError(t, db.Close())

	local, err := kv.Open("local", &kv.Options{InMemory: true})
	require.NoError(t, err)
	require.Zero(t, local.Metrics().Objects)
	require.NoError(t, local.Close())
}
