package kv

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/sstable"
)

// restingStore is a store in a bubble, of values that are separated, with nothing in its memtable.
func restingStore(t *testing.T, o *Options, values int) *DB {
	t.Helper()
	o.harness.FS, o.SeparateFrom, o.harness.BlobSize = vfstest.YieldingFS{FS: vfs.NewMem()}, 1000, 64<<10
	o.Compression = sstable.NoCompression
	db := openDir(t, "db", o)
	setEach(t, db, 0, values, make([]byte, 8<<10))
	require.NoError(t, db.Flush(t.Context()))
	db.settle()
	return db
}

// rest lets a store rest for a while by the clock of the bubble.
func rest(db *DB, d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	db.settle()
}

// The space of large values comes back although the memtable that hides them is far from full.
func TestLargeValuesComeBackFromAStoreAtRest(t *testing.T) {
	t.Parallel()
	const n = 200
	hide := map[string]func(t *testing.T, db *DB){
		"deleted": func(t *testing.T, db *DB) { deleteKeys(t, db, 0, n) },
		"shrunk":  func(t *testing.T, db *DB) { setEach(t, db, 0, n, []byte("short")) },
		"range": func(t *testing.T, db *DB) {
			require.NoError(t, db.DeleteRange(nil, nil, nil))
		},
	}
	for name, hide := range hide {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := restingStore(t, &Options{}, n)
				require.Greater(t, db.Metrics().Blobs.Bytes, int64(n*8<<9))
				hide(t, db)
				rest(db, time.Minute)
				require.LessOrEqual(t, db.Metrics().Blobs.Bytes, int64(3*64<<10))
				require.True(t, db.early.Idle(), "a store that is idle has no timer")
				require.NoError(t, db.Close())
			})
		})
	}
}

// inMemtable returns the number of points in the active memtable.
func inMemtable(db *DB) int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.mem.Len()
}

// What streams left behind in the memtable that holds them comes back.
func TestReplacedStreamsComeBackFromAStoreAtRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := restingStore(t, &Options{harness: harness.Harness{MinStreamed: 1 << 10}}, 1)
		for range 40 {
			require.NoError(t, db.SetReader(t.Context(), []byte("k"), 16<<10,
				bytes.NewReader(make([]byte, 16<<10)), nil))
		}
		require.Len(t, db.values.Files(), 40)
		rest(db, time.Minute)
		require.Empty(t, db.values.Files())
		require.LessOrEqual(t, db.Metrics().Blobs.Bytes, int64(3*64<<10))
		require.NoError(t, db.Close())
	})
}

// Scans of a store at rest soon pass no values that expired or were deleted in the memtable.
func TestScansOfAStoreAtRestPassNothingThatIsDead(t *testing.T) {
	t.Parallel()
	const n = 10_000
	synctest.Test(t, func(t *testing.T) {
		db := restingStore(t, &Options{MemtableSize: 32 << 20}, 1)
		b := db.NewBatch()
		for i := range n {
			storetest.Fine(t, b.SetTTL(binary.BigEndian.AppendUint32([]byte("a"), uint32(i)), []byte("v"),
				90*time.Second))
		}
		storetest.Fine(t, b.Set([]byte("b"), []byte("v")))
		require.NoError(t, b.Commit(Async))
		rest(db, time.Minute)
		require.EqualValues(t, n+1, inMemtable(db), "they are alive")
		rest(db, 2*time.Minute)
		require.Zero(t, inMemtable(db))
		require.LessOrEqual(t, stepsToFirst(t, db, []byte("a")), 0)
		require.NoError(t, db.Close())
	})
}

// A memtable that is small, or holds nothing that is dead, stays in memory however long the store rests or
// is written to slowly.
func TestALiveMemtableOfAStoreAtRestStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := restingStore(t, &Options{}, 0)
		flushes := db.Metrics().Flushes
		deleteKeys(t, db, 0, 1000)
		setEach(t, db, 1000, 9000, []byte("value"))
		for i := range 50 {
			require.NoError(t, db.Set(tombKey(20_000+i), []byte("value"), nil))
			rest(db, 7*time.Second)
		}
		rest(db, time.Hour)
		require.Equal(t, flushes, db.Metrics().Flushes)
		require.True(t, db.early.Idle())
		require.NoError(t, db.Close())
	})
}

// A memtable is not flushed for a compaction that cannot begin: level 0 would only grow.
func TestNoEarlyFlushWhileCompactionsArePaused(t *testing.T) {
	t.Parallel()
	db := openMem(t, nil)
	setEach(t, db, 0, 20_000, []byte("value"))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	db.settle() // all flushes are counted
	pause := func(paused bool) {
		db.mu.Lock()
		defer db.mu.Unlock()
		db.compactions.Paused = paused
	}
	pause(true)
	flushes := db.Metrics().Flushes
	deleteKeys(t, db, 0, memtable.MinTombstones+100)
	db.early.Wait()
	require.Zero(t, db.examineMemtable())
	require.NotZero(t, inMemtable(db))
	pause(false)
	require.Zero(t, db.examineMemtable())
	db.waitForBackground()
	require.Equal(t, flushes+1, db.Metrics().Flushes)
	require.NoError(t, db.Close())
}

// A write that replaces the memtable starts the timer, as all others do.
func TestAWriteToANewMemtableArmsTheWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := restingStore(t, &Options{MemtableSize: 64 << 10}, 0)
		set(t, db, "k", strings.Repeat("x", 40<<10))
		rest(db, time.Hour)
		require.True(t, db.early.Idle())
		set(t, db, "l", strings.Repeat("x", 40<<10))
		require.False(t, db.early.Idle())
		require.NoError(t, db.Close())
	})
}
