package kv

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv/metrics"
)

func TestNothingIsTimedByDefault(t *testing.T) {
	db := settledStore(t, 1000, nil)
	require.NoError(t, db.Set([]byte("k"), nil, Sync))
	require.Zero(t, db.Metrics().Latency)
	require.NoError(t, db.Close())
}

// checkOneIn requires that one in OneIn of n operations was timed: of each stripe exactly, but for
// those at its end.
func checkOneIn(t *testing.T, h metrics.Histogram, n int) {
	t.Helper()
	require.EqualValues(t, 16, h.OneIn)
	require.LessOrEqual(t, h.Count, uint64(n)/h.OneIn+counters.NumStripes)
	require.GreaterOrEqual(t, h.Count+counters.NumStripes, uint64(n)/h.OneIn)
	buckets := uint64(0)
	for _, b := range h.Buckets {
		buckets += b.Count
	}
	require.Equal(t, h.Count, buckets)
}

// All ways to look up a key and to write are counted, and Metrics may be asked for meanwhile.
func TestTimedOperationsAreCounted(t *testing.T) {
	t.Parallel()
	db := openMem(t, &Options{LatencyHistograms: true})
	const workers = 8
	rounds := scale.Fewer(1000, 250)
	value, done := bytes.Repeat([]byte("v"), 20), make(chan struct{})
	var working, watching sync.WaitGroup
	watching.Go(func() {
		last := metrics.Latency{}
		for end := false; !end; {
			select {
			case <-done:
				end = true
			default:
			}
			m := db.Metrics().Latency
			require.GreaterOrEqual(t, m.Get.Count, last.Get.Count)
			require.GreaterOrEqual(t, m.Commit.Sum, last.Commit.Sum)
			for _, b := range m.Sub(last).Get.Buckets {
				require.Less(t, b.Count, uint64(workers*rounds*5), "a bucket has lost some")
			}
			last = m
		}
	})
	for w := range workers {
		working.Go(func() {
			s := db.NewSnapshot()
			for i := range rounds {
				k := fmt.Appendf(nil, "%d/%d", w, i)
				require.NoError(t, db.Set(k, value, Async))
				_, err := db.Get(k)
				require.NoError(t, err)
				_, err = db.Has(k)
				require.NoError(t, err)
				_, err = db.GetSize(k)
				require.NoError(t, err)
				_, err = s.Get(k)
				require.ErrorIs(t, err, ErrNotFound)
				require.NoError(t, db.Update(func(tx *Tx) error {
					if _, err := tx.Get(k); err != nil {
						return err
					}
					return tx.Set(k, value)
				}))
			}
			require.NoError(t, s.Close())
		})
	}
	working.Wait()
	close(done)
	watching.Wait()
	m := db.Metrics()
	checkOneIn(t, m.Latency.Get, workers*rounds*5)
	require.EqualValues(t, workers*rounds*5, m.Gets)
	checkOneIn(t, m.Latency.Commit, workers*rounds*2)
	require.Zero(t, m.Sub(m).Latency.Commit.Count)
	require.NoError(t, db.Close())
}

// Syncs, flushes and stalls are all timed, and for as long as they last.
func TestLongOperationsAreTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const syncTakes, tableTakes = 10 * time.Millisecond, 50 * time.Millisecond
		fs := &vfstest.GateFS{FS: slowSyncs{vfs.NewMem(), syncTakes}, Table: func() { time.Sleep(tableTakes) }}
		db := openDir(t, "db", &Options{harness: harness.Harness{FS: fs}, LatencyHistograms: true,
			MemtableSize: 64 << 10, MaxMemtables: 2,
			L0CompactionThreshold: 100, L0SlowdownThreshold: 101, L0StopThreshold: 200})
		for i := range 200 {
			require.NoError(t, db.Set(fmt.Appendf(nil, "%d", i), make([]byte, 2000), NoSync))
		}
		for range 64 {
			require.NoError(t, db.Set([]byte("k"), nil, Sync))
		}
		settleStore(t, db)
		m := db.Metrics()
		l := m.Latency
		require.EqualValues(t, 1, l.Sync.OneIn)
		require.Equal(t, m.WALSyncs, l.Sync.Count)
		require.InEpsilon(t, syncTakes, l.Sync.Quantile(0.5), 1.0/32)
		require.GreaterOrEqual(t, l.Commit.Sum, syncTakes, "one of 64 at least was timed")
		require.Equal(t, m.Flushes, l.Flush.Count)
		require.Equal(t, time.Duration(m.Flushes)*tableTakes, l.Flush.Sum)
		require.Positive(t, l.Stall.Count)
		require.Equal(t, m.Stalls+m.Slowdowns, l.Stall.Count)
		require.Equal(t, m.StallTime+m.SlowdownTime, l.Stall.Sum)
		require.NoError(t, db.Close())
	})
}

// Writes that are slowed down, and do not stand still, have waited too.
func TestSlowedWritesAreTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDir(t, "db", &Options{harness: harness.Harness{FS: vfs.NewMem()}, LatencyHistograms: true,
			L0CompactionThreshold: 2,
			L0SlowdownThreshold:   2, L0StopThreshold: 20, MemtableSize: 1 << 20})
		db.holdCompactions(true)
		for i := range 4 {
			require.NoError(t, db.Set(fmt.Appendf(nil, "%d", i), make([]byte, 400_000), NoSync))
			require.NoError(t, db.Flush(t.Context()))
		}
		m := db.Metrics()
		require.Positive(t, m.Slowdowns)
		require.Zero(t, m.Stalls)
		require.Equal(t, m.Slowdowns, m.Latency.Stall.Count)
		require.Equal(t, m.SlowdownTime, m.Latency.Stall.Sum)
		db.holdCompactions(false)
		require.NoError(t, db.Close())
	})
}

// Writes are slowed down no longer than there is a reason to.
func TestSlowedWritesGoOnWhenThePressureIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openDir(t, "db", &Options{harness: harness.Harness{FS: vfs.NewMem()}, L0CompactionThreshold: 2,
			L0SlowdownThreshold: 2,
			L0StopThreshold:     3, MemtableSize: 1 << 20})
		db.holdCompactions(true)
		for i := range 2 {
			require.NoError(t, db.Set(fmt.Appendf(nil, "%d", i), []byte("v"), NoSync))
			require.NoError(t, db.Flush(t.Context()))
		}
		start := time.Now()
		require.NoError(t, db.Set([]byte("k"), make([]byte, 400_000), NoSync))
		require.Greater(t, time.Since(start), 300*time.Millisecond)

		start = time.Now()
		time.AfterFunc(10*time.Millisecond, func() { db.holdCompactions(false) })
		require.NoError(t, db.Set([]byte("k"), make([]byte, 400_000), NoSync))
		took := time.Since(start)
		require.GreaterOrEqual(t, took, 10*time.Millisecond)
		require.Less(t, took, 20*time.Millisecond)
		m := db.Metrics()
		require.Positive(t, m.Slowdowns)
		require.LessOrEqual(t, took, m.SlowdownTime)
		require.NoError(t, db.Close())
	})
}

// Lookups in a snapshot of a store that follows a writer are timed as others are.
func TestLookupsOfAFollowerAreTimed(t *testing.T) {
	dir := t.TempDir()
	w := openDir(t, dir, nil)
	set(t, w, "k", "v")
	db, err := OpenReadOnly(dir, &Options{LatencyHistograms: true})
	require.NoError(t, err)
	s := db.NewSnapshot()
	const n = 4000
	for range n {
		_, err := s.Get([]byte("k"))
		require.NoError(t, err)
	}
	checkOneIn(t, db.Metrics().Latency.Get, n)
	require.NoError(t, s.Close())
	require.NoError(t, db.Close())
	require.NoError(t, w.Close())
}
