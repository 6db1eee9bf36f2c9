package kv

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// What only a snapshot kept goes when it is closed: by Compact, and by itself where half of
// the keys were overwritten. With the snapshot open nothing is rewritten over and over.
func TestOverwrittenVersionsGoWithTheirSnapshot(t *testing.T) {
	t.Parallel()
	for kind := range numCompactions {
		for _, asked := range []bool{true, false} {
			db := openMem(t, &Options{Compaction: kind, L0CompactionThreshold: 50})
			fill := func(value string) {
				for i := range 2000 {
					require.NoError(t, db.Set(fmt.Appendf(nil, "%04d", i), []byte(value), Async))
				}
			}
			fill("old")
			s := db.NewSnapshot()
			fill("new")
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			db.waitForBackground()
			require.EqualValues(t, 4000, db.Metrics().Levels[lastLevel].Entries)
			compactions := db.Metrics().Compactions
			db.scheduleCompactions()
			db.waitForBackground()
			require.Equal(t, compactions, db.Metrics().Compactions, "the snapshot needs them")
			if asked {
				db.mu.Lock()
				db.compactions.Paused = true
				db.mu.Unlock()
			}
			require.NoError(t, s.Close())
			if asked {
				require.NoError(t, db.Compact(t.Context(), nil, nil))
			}
			db.waitForBackground()
			require.EqualValues(t, 2000, db.Metrics().Levels[lastLevel].Entries, "%v, asked for: %v", kind, asked)
			compactions = db.Metrics().Compactions
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			require.Equal(t, compactions, db.Metrics().Compactions, "nothing is left to do")
			require.NoError(t, db.Close())
		}
	}
}

// Values that a store does not drop by itself, since operands of a merge lie over them, are
// no reason to rewrite their files for ever.
func TestOperandsOverAValueAreNoWaste(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Clock: clock.Time, Merger: modelMerger})
	for i := range 10 {
		k := strconv.Itoa(i)
		require.NoError(t, db.SetTTL([]byte(k), []byte("a"), time.Second, nil))
		mergeAll(t, db, k, "b", "c")
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	db.waitForBackground()
	compactions := db.Metrics().Compactions
	db.scheduleCompactions()
	db.waitForBackground()
	require.Equal(t, compactions, db.Metrics().Compactions)
}

// Nor are tombstones under operands that nobody can combine: in the last level they hide
// nothing, and go.
func TestTombstonesUnderOperandsAreNoWaste(t *testing.T) {
	for kind := range numCompactions {
		disk := vfs.NewMem()
		own := NewMerger("own", func(_, older, newer []byte) ([]byte, error) { return append(older, newer...), nil })
		db := openDir(t, "db", &Options{harness: harness.Harness{FS: disk}, Merger: own})
		for i := range 10 {
			k := strconv.Itoa(i)
			require.NoError(t, db.Delete([]byte(k), nil))
			mergeAll(t, db, k, "a")
		}
		require.NoError(t, db.Close())
		db = openDir(t, "db", &Options{harness: harness.Harness{FS: disk}, Compaction: kind})
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		db.mu.Lock()
		for n := 0; db.compactions.Running > 0 && n < 20; n++ {
			db.progress.Wait()
		}
		running := db.compactions.Running
		db.mu.Unlock()
		require.Zero(t, running, "%v: one compaction leads to the next", kind)
		require.EqualValues(t, 10, db.Metrics().Levels[lastLevel].Entries)
		require.NoError(t, db.Close())
		db = openDir(t, "db", &Options{harness: harness.Harness{FS: disk}, Merger: own})
		requireValue(t, db, "1", "a")
		require.NoError(t, db.Close())
	}
}

// Values that have expired go, though one beside them in their file lives for 90 years, and
// though nobody writes to the store: time alone starts what drops them, in every level.
func TestAnIdleStoreDropsWhatHasExpired(t *testing.T) {
	for kind := range numCompactions {
		for _, level := range []int{0, lastLevel} {
			synctest.Test(t, func(t *testing.T) {
				db, err := Open("", &Options{InMemory: true, Compaction: kind})
				require.NoError(t, err)
				for i := range 1000 {
					require.NoError(t, db.SetTTL(fmt.Appendf(nil, "%04d", i), []byte("v"), time.Minute, Async))
				}
				require.NoError(t, db.SetTTL([]byte("long"), []byte("v"), 90*365*24*time.Hour, Async))
				if level == 0 {
					require.NoError(t, db.Flush(t.Context()))
				} else {
					require.NoError(t, db.Compact(t.Context(), nil, nil))
				}
				synctest.Wait()
				require.EqualValues(t, 1001, db.Metrics().Levels[level].Entries)
				time.Sleep(59 * time.Second)
				synctest.Wait()
				require.EqualValues(t, 1001, db.Metrics().Levels[level].Entries)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				dropped := db.Metrics().ExpiredDropped
				require.NoError(t, db.Close())
				require.EqualValues(t, 1000, dropped, "%v, level %d", kind, level)
			})
		}
	}
}

// So do those that lie between values that stay: a run whose files are mostly waste together
// is rewritten, though of some of them alone less than half has expired.
func TestAnIdleStoreDropsWhatHasExpiredInARun(t *testing.T) {
	for _, kind := range []CompactionStyle{Tiered, LazyLeveled} {
		synctest.Test(t, func(t *testing.T) {
			db, err := Open("", &Options{InMemory: true, Compaction: kind, TargetFileSize: 16 << 10,
				Compression: sstable.NoCompression})
			require.NoError(t, err)
			value, expiring := make([]byte, 100), 0
			for i := range 1000 {
				k, ttl := fmt.Appendf(nil, "%04d", i), 2*time.Minute
				if i < 300 {
					ttl = time.Minute
				} else if i%5 > 1 {
					require.NoError(t, db.Set(k, value, Async))
					continue
				}
				expiring++
				require.NoError(t, db.SetTTL(k, value, ttl, Async))
			}
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			synctest.Wait()
			files := db.Metrics().Levels[lastLevel].Files
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			dropped := db.Metrics().ExpiredDropped
			require.NoError(t, db.Close())
			require.Greater(t, files, 1)
			require.EqualValues(t, expiring, dropped, "%v", kind)
		})
	}
}

// Level 0 waits for its threshold, whatever tombstones it has beside values that expire.
func TestTombstonesInLevel0WaitForItsThreshold(t *testing.T) {
	for kind := range numCompactions {
		db := openMem(t, &Options{Compaction: kind, L0CompactionThreshold: 8})
		for range 3 {
			for i := range 10 {
				require.NoError(t, db.Delete([]byte(strconv.Itoa(i)), nil))
			}
			require.NoError(t, db.SetTTL([]byte("a"), []byte("v"), time.Hour, nil))
			require.NoError(t, db.Flush(t.Context()))
			db.waitForBackground()
		}
		require.Equal(t, 3, db.Metrics().Levels[0].Files, "%v", kind)
	}
}

// Few values, which may be large ones, are dropped as many are.
func TestFewValuesThatExpiredGo(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Clock: clock.Time})
	for i := range 6 {
		require.NoError(t, db.SetTTL([]byte(strconv.Itoa(i)), []byte("v"), time.Second, nil))
	}
	require.NoError(t, db.SetTTL([]byte("a"), []byte("v"), time.Hour, nil))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	clock.Advance(time.Minute)
	db.scheduleCompactions()
	db.waitForBackground()
	require.EqualValues(t, 1, db.Metrics().Levels[lastLevel].Entries)
}

// A few values that expired do not have the store rewritten over which they are spread.
func TestAFewExpiredValuesAreNotWorthRewritingTheStore(t *testing.T) {
	t.Parallel()
	for kind := range numCompactions {
		clock := &storetest.Clock{}
		db := openMem(t, &Options{Clock: clock.Time, Compaction: kind, L0CompactionThreshold: 50})
		for i := range 5000 {
			require.NoError(t, db.Set(fmt.Appendf(nil, "%04d", i), nil, Async))
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		size := db.Metrics().Levels[lastLevel].Bytes
		written := db.Metrics().CompactionWrittenBytes
		for range 5 {
			for i := range 10 {
				require.NoError(t, db.SetTTL(fmt.Appendf(nil, "%04d", i*500), nil, time.Second, Async))
			}
			require.NoError(t, db.Flush(t.Context()))
			clock.Advance(time.Minute)
			db.scheduleCompactions()
			db.waitForBackground()
		}
		require.Less(t, db.Metrics().CompactionWrittenBytes-written, uint64(size), "%v", kind)
	}
}
