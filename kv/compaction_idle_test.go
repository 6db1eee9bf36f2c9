package kv

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// inIdleStore runs a test in a bubble, with a store of several levels in which nothing is due. Flush puts n random
// entries into a run of level 0.
func inIdleStore(t *testing.T, o Options, test func(t *testing.T, db *DB, flush func(n int))) {
	synctest.Test(t, func(t *testing.T) {
		o.TargetFileSize, o.BaseLevelSize = 16<<10, 16<<10
		if o.harness.FS == nil {
			o.harness.FS = vfs.NewMem()
		}
		db, m, rng := openDir(t, "db", &o), storetest.Model{}, rand.New(rand.NewPCG(1, 2))
		flush := func(n int) {
			for range n {
				k := fmt.Sprintf("key%06d", rng.IntN(20_000))
				m[k] = string(randomBytes(rng, 30))
				set(t, db, k, m[k])
			}
			require.NoError(t, db.Flush(t.Context()))
			db.settle()
		}
		for len(db.Metrics().Runs) < 4 || db.Metrics().Levels[0].Runs == 0 {
			flush(1000)
		}
		require.Zero(t, db.Metrics().CompactionDebt)
		test(t, db, flush)
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	})
}

// runsOf returns how many runs a store has.
func runsOf(db *DB) int { return len(db.Metrics().Runs) }

// atRest lets time pass, and whatever follows from it.
func atRest(db *DB, d time.Duration) {
	for range 60 {
		time.Sleep(d / 60)
		synctest.Wait()
		db.settle()
	}
}

// An idle store has one run before long, and then nothing more happens.
func TestAnIdleStoreMergesItsRuns(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // compactions may end at the same time
	var reasons []string
	o := Options{IdleCompaction: 10 * time.Second}
	o.Events.Compacted = func(c CompactionInfo) {
		mu.Lock()
		defer mu.Unlock()
		reasons = append(reasons, c.Reason)
	}
	inIdleStore(t, o, func(t *testing.T, db *DB, _ func(n int)) {
		before, known := db.Metrics(), len(reasons)
		require.Greater(t, runsOf(db), 2)
		require.Zero(t, before.IdleCompactions)
		atRest(db, 9*time.Second)
		require.Zero(t, db.Metrics().Sub(before).Compactions)
		atRest(db, 5*time.Minute)
		require.Equal(t, 1, runsOf(db))
		for _, reason := range reasons[known:] {
			require.Equal(t, compaction.ReasonIdle, reason)
		}
		did := db.Metrics().Sub(before)
		require.Positive(t, did.IdleCompactions)
		require.Equal(t, did.Compactions, did.IdleCompactions)
		require.Equal(t, did.CompactionWrittenBytes, did.IdleCompactionBytes)
		require.LessOrEqual(t, did.IdleCompactionBytes, before.FlushBytes*9/8+uint64(before.Levels[0].Bytes))
		atRest(db, time.Hour)
		require.Zero(t, db.Metrics().Sub(before).Compactions-did.Compactions)
	})
}

func TestAStoreThatMustNotMergeWhenIdle(t *testing.T) {
	t.Parallel()
	for _, never := range []Options{{}, {IdleCompaction: -1}} {
		inIdleStore(t, never, func(t *testing.T, db *DB, _ func(n int)) {
			atRest(db, time.Hour)
			require.Zero(t, db.Metrics().IdleCompactions)
		})
	}
}

// A store that flushes all the time is never idle, whatever reads cost.
func TestAConstantWriterPaysNothing(t *testing.T) {
	scale.OneGoroutine(t, "a count of merges; TestAFlushEndsAnIdleMerge has its goroutines")
	t.Parallel()
	inIdleStore(t, Options{IdleCompaction: 10 * time.Second}, func(t *testing.T, db *DB, flush func(n int)) {
		for range 100 {
			flush(20)
			scan(t, db, "key0", "key1")
			atRest(db, 9*time.Second)
		}
		require.Zero(t, db.Metrics().IdleCompactions)
	})
}

// What is flushed a little at a time does not have the store written again and again.
func TestSmallFlushesPayForLittle(t *testing.T) {
	t.Parallel()
	inIdleStore(t, Options{IdleCompaction: time.Second}, func(t *testing.T, db *DB, flush func(n int)) {
		atRest(db, 5*time.Minute)
		require.Equal(t, 1, runsOf(db))
		before := db.Metrics()
		for range 50 {
			flush(20)
			atRest(db, 5*time.Minute)
		}
		did, size := db.Metrics().Sub(before), before.Levels[lastLevel].Bytes
		require.LessOrEqual(t, did.IdleCompactionBytes, uint64(size)*9/8+did.FlushBytes*17/8)
	})
}

// Scans pay for a merge that flushes do not pay for.
func TestScansPayForAMerge(t *testing.T) {
	scale.OneGoroutine(t, "a count of merges; TestAFlushEndsAnIdleMerge has its goroutines")
	t.Parallel()
	inIdleStore(t, Options{IdleCompaction: 10 * time.Second}, func(t *testing.T, db *DB, flush func(n int)) {
		for runsOf(db) != 2 {
			atRest(db, time.Hour)
			flush(20)
			atRest(db, time.Hour)
		}
		before := db.Metrics()
		for range 100 {
			for i := range 1000 {
				scan(t, db, fmt.Sprintf("key%06d", 10_000+i), fmt.Sprintf("key%06d", 10_001+i))
			}
			atRest(db, time.Minute)
		}
		require.Equal(t, 1, runsOf(db))
		require.EqualValues(t, 1, db.Metrics().Sub(before).IdleCompactions)
	})
}

// A store whose MemoryBudget's threads are taken merges nothing, and does once they are free.
func TestAnIdleStoreWaitsForOthersOfItsBudget(t *testing.T) {
	t.Parallel()
	o := Options{IdleCompaction: 10 * time.Second, MemoryBudget: NewMemoryBudget(64 << 20)}
	inIdleStore(t, o, func(t *testing.T, db *DB, _ func(n int)) {
		require.True(t, db.memory.share.TryThread())
		atRest(db, time.Hour)
		require.Zero(t, db.Metrics().IdleCompactions)
		db.memory.share.ReleaseThread()
		atRest(db, time.Hour)
		require.Equal(t, 1, runsOf(db))
	})
}

// A store is not idle while a flush runs, nor at once when it has ended.
func TestNoIdleMergeWhileAFlushRuns(t *testing.T) {
	t.Parallel()
	var held atomic.Pointer[chan struct{}]
	o := Options{IdleCompaction: 10 * time.Second, L0CompactionThreshold: 100}
	o.harness.FS = &vfstest.GateFS{FS: vfs.NewMem(), Table: func() {
		if c := held.Load(); c != nil {
			<-*c
		}
	}}
	inIdleStore(t, o, func(t *testing.T, db *DB, flush func(n int)) {
		before, gate := db.Metrics(), make(chan struct{})
		held.Store(&gate)
		go flush(20)
		time.Sleep(time.Hour)
		held.Store(nil)
		require.Zero(t, db.Metrics().Sub(before).RunningCompactions)
		close(gate)
		synctest.Wait()
		atRest(db, 8*time.Second)
		require.Zero(t, db.Metrics().Sub(before).Compactions)
		atRest(db, time.Hour)
		require.Equal(t, 1, runsOf(db))
	})
}

// Compact stops a merge of an idle store that is in its way.
func TestCompactStopsAnIdleMerge(t *testing.T) {
	t.Parallel()
	o := Options{IdleCompaction: 10 * time.Second, CompactionRate: minCompactionRate, L0CompactionThreshold: 100}
	inIdleStore(t, o, func(t *testing.T, db *DB, _ func(n int)) {
		idleMergeBegins(t, db)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.Zero(t, db.Metrics().IdleCompactions)
		require.Equal(t, 1, runsOf(db))
	})
}

// A store whose disk was full writes again at once: a merge that it began when it was idle does not hold it up.
func TestAResumeEndsAnIdleMerge(t *testing.T) {
	t.Parallel()
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	o := Options{IdleCompaction: 10 * time.Second, CompactionRate: minCompactionRate, L0CompactionThreshold: 100}
	o.harness.FS, o.harness.Backoff = f, quickBackoff
	inIdleStore(t, o, func(t *testing.T, db *DB, _ func(n int)) {
		idleMergeBegins(t, db)
		var full atomic.Bool
		full.Store(true)
		f.Set(func(c vfstest.Call) (int, error) {
			if full.Load() && c.Op == "write" { // of the log: the merge waits for its rate
				return 0, syscall.ENOSPC
			}
			return 0, nil
		})
		require.ErrorIs(t, db.Set([]byte("key000000"), nil, Sync), syscall.ENOSPC)
		full.Store(false)
		for range 100 {
			if db.Metrics().Failure == "" {
				break
			}
			time.Sleep(time.Millisecond)
		}
		require.Empty(t, db.Metrics().Failure)
		require.Zero(t, db.Metrics().IdleCompactions)
		require.Zero(t, db.Metrics().FailedCompactions)
		f.Set(nil)
	})
}

// idleMergeBegins returns when a merge runs.
func idleMergeBegins(t *testing.T, db *DB) {
	t.Helper()
	for range 60_000 {
		if db.Metrics().RunningCompactions > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	require.Fail(t, "the store is idle")
}

// A flush ends the merge of an idle store, which then changes nothing. So does Close.
func TestAFlushEndsAnIdleMerge(t *testing.T) {
	t.Parallel()
	o := Options{IdleCompaction: 10 * time.Second, CompactionRate: minCompactionRate, L0CompactionThreshold: 100}
	t.Run("flush", func(t *testing.T) {
		t.Parallel()
		inIdleStore(t, o, func(t *testing.T, db *DB, flush func(n int)) {
			before := db.Metrics()
			idleMergeBegins(t, db)
			flush(20)
			did := db.Metrics().Sub(before)
			require.Zero(t, did.IdleCompactions)
			require.Zero(t, did.FailedCompactions)
			require.Equal(t, len(before.Runs)+1, runsOf(db))
		})
	})
	t.Run("close", func(t *testing.T) {
		t.Parallel()
		o := o
		o.Events.Compacted = func(c CompactionInfo) { assert.NotEqual(t, compaction.ReasonIdle, c.Reason) }
		o.Events.Failed = func(err error) { assert.NoError(t, err) }
		inIdleStore(t, o, func(t *testing.T, db *DB, _ func(n int)) { idleMergeBegins(t, db) })
	})
}
