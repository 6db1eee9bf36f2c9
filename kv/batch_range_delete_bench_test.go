package kv

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
)

// manyTombstones is how many range tombstones the benchmarks and tests of many have.
const manyTombstones = 200_000

func tombKey(i int) []byte { return fmt.Appendf(nil, "key%08d", i) }

// deleteEach deletes [from, to), each number divisible by step, as a range of its own.
func deleteEach(tb testing.TB, db *DB, from, to, step int) {
	b := db.NewBatch()
	for i := from; i < to; i += step {
		require.NoError(tb, b.DeleteRange(tombKey(i), tombKey(i+1)))
		if b.Len() == 1000 || i+step >= to {
			require.NoError(tb, b.Commit(Async))
			b.Reset()
		}
	}
}

// setEach sets [from, to).
func setEach(tb testing.TB, db *DB, from, to int, value []byte) {
	b := db.NewBatch()
	for i := from; i < to; i++ {
		storetest.Fine(tb, b.Set(tombKey(i), value))
		if b.Len() == 1000 || i+1 == to {
			storetest.Fine(tb, b.Commit(Async))
			b.Reset()
		}
	}
}

// openManyTombstones returns a store of n range tombstones and twice as many keys, of
// which every other is under a range tombstone of its own. Tombstones and keys are in
// several tables of two levels: an open snapshot from before keeps them apart.
func openManyTombstones(tb testing.TB, n int) (*DB, *Snapshot) {
	db := openDir(tb, tb.TempDir(), &Options{TargetFileSize: 1 << 20, MemtableSize: 256 << 20,
		L0CompactionThreshold: 900, L0SlowdownThreshold: 950})
	setEach(tb, db, 0, 2*n, make([]byte, 20))
	require.NoError(tb, db.Flush(tb.Context()))
	require.NoError(tb, db.Compact(tb.Context(), nil, nil))
	snapshot := db.NewSnapshot()
	deleteEach(tb, db, 0, n, 2)
	require.NoError(tb, db.Flush(tb.Context()))
	require.NoError(tb, db.Compact(tb.Context(), nil, nil))
	for part := range 4 {
		deleteEach(tb, db, n+part*n/4, n+(part+1)*n/4, 2)
		require.NoError(tb, db.Flush(tb.Context()))
	}
	return db, snapshot
}

// BenchmarkTombstones is what range tombstones cost those who read and write beside them:
//
//   - the first Get after a flush, of a store with 200,000 of them elsewhere, or after the
//     flush that wrote them: a search in the tables over the key. What the op counts is the
//     flush; the Get is in the metrics;
//   - a Get of a live key and of one under a tombstone;
//   - a scan of 1000 entries, every other key under a tombstone of its own;
//   - a DeleteRange of one key, and a Get after each.
//
// What point tombstones cost a scan over them is in benchDeletedScan.
func BenchmarkTombstones(b *testing.B) {
	b.Run("first-get-after-flush", benchFirstGet)
	b.Run("first-get-after-their-flush", benchFirstGetOfTheirs)
	db, snapshot := openManyTombstones(b, manyTombstones)
	for name, odd := range map[string]int{"get-live": 1, "get-deleted": 0} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst, _ = db.AppendGet(dst[:0], tombKey(2*rand.IntN(manyTombstones)+odd))
			}
		})
	}
	b.Run("scan-1000", func(b *testing.B) {
		for b.Loop() {
			it, err := db.NewIter(nil)
			require.NoError(b, err)
			n := 0
			for ok := it.SeekGE(tombKey(rand.IntN(2 * (manyTombstones - 1000)))); ok && n < 1000; ok = it.Next() {
				n++
			}
			require.Equal(b, 1000, n)
			require.NoError(b, it.Close())
		}
	})
	require.NoError(b, snapshot.Close())
	require.NoError(b, db.Close())
	b.Run("delete-range", func(b *testing.B) { benchDeleteRange(b, false) })
	b.Run("delete-range-and-get", func(b *testing.B) { benchDeleteRange(b, true) })
	b.Run("deleted", benchDeletedScan)
}

// reportFirst reports what first lookups took.
func reportFirst(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
}

func timeGet(b *testing.B, db *DB) time.Duration {
	key := tombKey(rand.IntN(2 * manyTombstones))
	start := time.Now()
	_, err := db.Has(key)
	took := time.Since(start)
	require.NoError(b, err)
	return took
}

func benchFirstGet(b *testing.B) {
	db, snapshot := openManyTombstones(b, manyTombstones)
	for range 1000 {
		timeGet(b, db) // the tables are open
	}
	var took []time.Duration
	for b.Loop() {
		require.NoError(b, db.Set([]byte("other"), nil, Async))
		require.NoError(b, db.Flush(b.Context()))
		took = append(took, timeGet(b, db))
	}
	reportFirst(b, took)
	require.NoError(b, snapshot.Close())
	require.NoError(b, db.Close())
}

func benchFirstGetOfTheirs(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		db, err := Open("", &Options{InMemory: true, MemtableSize: 256 << 20})
		require.NoError(b, err)
		setEach(b, db, 0, manyTombstones, nil)
		require.NoError(b, db.Flush(b.Context()))
		snapshot := db.NewSnapshot()
		deleteEach(b, db, 0, manyTombstones, 1)
		require.NoError(b, db.Flush(b.Context()))
		took = append(took, timeGet(b, db))
		require.NoError(b, snapshot.Close())
		require.NoError(b, db.Close())
	}
	reportFirst(b, took)
}

func benchDeleteRange(b *testing.B, get bool) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		i := rand.IntN(1 << 30)
		lo, hi := tombKey(i), tombKey(i+1)
		if err := db.DeleteRange(lo, hi, Async); err != nil {
			b.Fatal(err)
		}
		if get {
			if ok, err := db.Has(lo); ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	}
	m := db.Metrics()
	b.ReportMetric(1000*float64(m.Flushes)/float64(b.N), "flushes/1000")
	b.ReportMetric(1000*float64(m.Stalls)/float64(b.N), "stalls/1000")
	require.NoError(b, db.Close())
}
