package kv

import (
	"bytes"
	"testing"

	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/scale"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// deleteKeys deletes keys one by one.
func deleteKeys(tb testing.TB, db *DB, from, to int) {
	b := db.NewBatch()
	for i := from; i < to; i++ {
		storetest.Fine(tb, b.Delete(tombKey(i)))
		if b.Len() == 1000 || i+1 == to {
			storetest.Fine(tb, b.Commit(Async))
			b.Reset()
		}
	}
}

// stepsToFirst returns how many entries of all sources an iterator passes on its way to the first
// live key at or after key.
func stepsToFirst(tb testing.TB, db *DB, key []byte) (steps int) {
	it, err := db.NewIter(&IterOptions{LowerBound: key})
	require.NoError(tb, err)
	require.True(tb, it.First())
	first := bytes.Clone(it.Key())
	require.NoError(tb, it.Close())
	s := db.acquire(0)
	defer s.release(0)
	var in iterator.Sources
	in.AddMemtable(s.mem)
	for _, m := range s.imms {
		in.AddMemtable(m)
	}
	in.AddVersion(s.version, &db.tables, key, nil, nil)
	for ok := in.First(); ok && bytes.Compare(in.Key().User, first) < 0; ok = in.Next() {
		if bytes.Compare(in.Key().User, key) >= 0 {
			steps++
		}
	}
	in.Release()
	return steps
}

// A file of level 0 that is nothing but deletes does not wait for others: a scan over what it
// deleted has nothing to pass.
func TestDeletesCloseTogetherGoDownAtOnce(t *testing.T) {
	t.Parallel()
	const n = 20_000 / storetest.RaceFactor
	for kind := range numCompactions {
		for _, reopen := range []bool{false, true} {
			fsys := vfs.NewMem()
			o := &Options{harness: harness.Harness{FS: fsys}, Compaction: kind, MemtableSize: 64 << 20}
			db := openDir(t, "db", o)
			setEach(t, db, 0, 3*n, []byte("value"))
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			if reopen {
				db.mu.Lock()
				db.compactions.Paused = true
				db.mu.Unlock()
			}
			db.early.Stop() // all are in one file
			deleteKeys(t, db, n, 2*n)
			require.NoError(t, db.Flush(t.Context()))
			if reopen { // what the manifest says is enough
				require.Greater(t, stepsToFirst(t, db, tombKey(n)), n)
				require.NoError(t, db.Close())
				db = openDir(t, "db", o)
				db.scheduleCompactions()
			}
			db.waitForBackground()
			require.Zero(t, stepsToFirst(t, db, tombKey(n)), "%v", kind)
			for _, l := range db.Metrics().Levels {
				require.Zero(t, l.Deletes, "%v", kind)
			}
			require.NoError(t, db.Close())
		}
	}
}

// Deletes that are few beside what would be merged for them wait: the bound of what is written.
func TestDeletesCloseTogetherWaitForMoreIfTheyAreFew(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of tables; TestDeletesCloseTogetherGoDownAtOnce has its goroutines")
	const n = 6000
	for kind := range numCompactions {
		for _, most := range []int{9, 11} {
			db := openMem(t, &Options{Compaction: kind, MemtableSize: 64 << 20})
			setEach(t, db, 0, most*n-n, []byte("value"))
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			written := db.Metrics().CompactionWrittenBytes
			db.early.Stop() // all are in one file
			deleteKeys(t, db, n, 2*n)
			require.NoError(t, db.Delete(tombKey(0), Async)) // the file spans all keys
			require.NoError(t, db.Delete(tombKey(most*n), Async))
			require.NoError(t, db.Flush(t.Context()))
			db.waitForBackground()
			require.Equal(t, most < 10, db.Metrics().CompactionWrittenBytes > written, "%v, %d", kind, most)
			require.Equal(t, most > 10, db.Metrics().Levels[0].Files == 1, "%v, %d", kind, most)
		}
	}
}

// A stretch of deletes within a large file of a level takes that file down, and a snapshot that
// needs what was deleted keeps all as it is until it is closed.
func TestAStretchOfDeletesInALargeFileGoesDown(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of tables")
	const n = 10_000 / storetest.RaceFactor
	for kind := range numCompactions {
		for _, held := range []bool{false, true} {
			db := openMem(t, &Options{Compaction: kind, MemtableSize: 64 << 20, TargetFileSize: 64 << 20})
			setEach(t, db, 0, 4*n, []byte("value"))
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			s := db.NewSnapshot()
			deleteKeys(t, db, n, 2*n)
			setEach(t, db, 2*n, 4*n, []byte("newer")) // beside them in the file, more than half of it
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			require.EqualValues(t, 1, db.Metrics().Levels[lastLevel].Files)
			require.GreaterOrEqual(t, stepsToFirst(t, db, tombKey(n)), n)
			if held {
				compactions := db.Metrics().Compactions
				for range 3 {
					db.scheduleCompactions()
					db.waitForBackground()
				}
				require.Equal(t, compactions, db.Metrics().Compactions, "%v: the snapshot needs them", kind)
				require.GreaterOrEqual(t, stepsToFirst(t, db, tombKey(n)), n)
			}
			require.NoError(t, s.Close())
			db.waitForBackground()
			require.Zero(t, stepsToFirst(t, db, tombKey(n)), "%v", kind)
			require.EqualValues(t, 3*n, db.Metrics().Levels[lastLevel].Entries, "%v", kind)
		}
	}
}

// totalWritten returns how many bytes a store has written to logs and tables.
func totalWritten(db *DB) uint64 {
	m := db.Metrics()
	return m.WALBytes + m.FlushBytes + m.CompactionWrittenBytes
}

// A queue's consumer passes about what one memtable deleted, with the values under the deletes,
// however few files level 0 has, and the queue's writes stay within a bound. (Where level 0 waits
// for four files it passes 64,000 entries, and 3.2 bytes are written for one.) A compaction takes MinClustered
// tombstones at least, here those of 5 batches, and writes what is live: 12 compactions write 4.6 bytes for
// one. The log and
// flushes write 2.3 at most. When memtables are full is up to chance: their nodes are of random heights.
func TestAQueueStaysBounded(t *testing.T) {
	scale.OneGoroutine(t, "a count of tables")
	t.Parallel()
	const memtable, length, batch = 1 << 20, 30_000, 1000
	for kind := range numCompactions {
		db := openMem(t, &Options{Compaction: kind, MemtableSize: memtable, TargetFileSize: memtable,
			BaseLevelSize: 2 * memtable, Compression: sstable.NoCompression, MaxConcurrentCompactions: 1})
		value := make([]byte, 20)
		setEach(t, db, 0, length, value)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		loaded := totalWritten(db)
		user, worst, sum, scans := 0, 0, 0, 0
		for front := 0; front < min(scale.Count(2, 4), 4)*length; front += batch {
			setEach(t, db, length+front, length+front+batch, value)
			deleteKeys(t, db, front, front+batch)
			user += batch * (len(tombKey(0))*2 + len(value))
			db.waitForBackground()
			steps := stepsToFirst(t, db, nil)
			worst, sum, scans = max(worst, steps), sum+steps, scans+1
		}
		written := float64(totalWritten(db)-loaded) / float64(user)
		t.Logf("%v: steps: at most %d, %d on average; written: %.1f", kind, worst, sum/scans, written)
		require.LessOrEqual(t, worst, 24_000, "%v", kind)
		require.LessOrEqual(t, written, 7.0, "%v", kind)
	}
}

// So it is with default options, whose memtables are large: tombstones in memory count.
func TestAQueueStaysBoundedWithDefaultOptions(t *testing.T) {
	scale.OneGoroutine(t, "a count of entries")
	t.Parallel()
	const length, batch = 30_000, 1000
	for kind := range numCompactions {
		db := openMem(t, &Options{Compaction: kind})
		setEach(t, db, 0, length, make([]byte, 20))
		worst := 0
		for front := 0; front < 2*length; front += batch {
			setEach(t, db, length+front, length+front+batch, make([]byte, 20))
			deleteKeys(t, db, front, front+batch)
			db.waitForBackground()
			worst = max(worst, stepsToFirst(t, db, nil))
		}
		t.Logf("%v: at most %d steps", kind, worst)
		require.LessOrEqual(t, worst, 16_000, "%v", kind)
	}
}

// benchDeletedScan scans 10 entries behind 100,000 keys that were deleted one by one: with the
// deletes in the memtable, in a file of level 0 that no compaction has taken yet, and after
// compactions; and over values, or over keys that were never there.
func benchDeletedScan(b *testing.B) {
	const deleted = 100_000
	for _, over := range []string{"values", "nothing"} {
		db := openDir(b, b.TempDir(), &Options{MemtableSize: 256 << 20})
		if over == "values" {
			setEach(b, db, 0, deleted, make([]byte, 20))
		}
		setEach(b, db, deleted, 2*deleted, make([]byte, 20))
		require.NoError(b, db.Compact(b.Context(), nil, nil))
		pause := func(paused bool) {
			db.mu.Lock()
			db.compactions.Paused = paused
			db.mu.Unlock()
		}
		pause(true)
		deleteKeys(b, db, 0, deleted)
		scan := func(b *testing.B) {
			for b.Loop() {
				it, err := db.NewIter(nil)
				require.NoError(b, err)
				n := 0
				for ok := it.SeekGE(tombKey(0)); ok && n < 10; ok = it.Next() {
					n++
				}
				require.Equal(b, 10, n)
				require.NoError(b, it.Close())
			}
		}
		b.Run("memtable-over-"+over, scan)
		require.NoError(b, db.Flush(b.Context()))
		b.Run("flushed-over-"+over, scan)
		pause(false)
		db.scheduleCompactions()
		db.waitForBackground()
		b.Run("settled-over-"+over, scan)
		require.NoError(b, db.Close())
	}
}
