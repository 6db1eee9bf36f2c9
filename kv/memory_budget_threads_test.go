package kv

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// A gatedStore is one of which a test can hold up what writes tables.
type gatedStore struct {
	*DB
	held    atomic.Bool
	release chan struct{}
}

func openGated(t *testing.T, o Options) *gatedStore {
	g := &gatedStore{release: make(chan struct{})}
	o.harness.FS = &vfstest.GateFS{FS: vfs.NewMem(), Table: func() {
		if g.held.Load() {
			<-g.release
		}
	}}
	g.DB = openDir(t, "db", &o)
	return g
}

// holdThreads has so many stores hold a thread of a budget each, and returns a function that lets them go.
func holdThreads(t *testing.T, b *MemoryBudget, n int) (letGo func()) {
	var wg sync.WaitGroup
	var stores []*gatedStore
	for range n {
		g := openGated(t, Options{MemoryBudget: b})
		stores = append(stores, g)
		set(t, g.DB, "key", "value")
		require.NoError(t, g.Flush(t.Context()))
		g.held.Store(true)
		wg.Go(func() {
			if err := g.Compact(t.Context(), nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
	storetest.Until(func() bool { return b.Usage().Compactions == n })
	return func() {
		for _, g := range stores {
			close(g.release)
		}
		wg.Wait()
		for _, g := range stores {
			require.NoError(t, g.Close())
		}
	}
}

// Compact waits for a thread of the budget, no longer than its context lasts, and in turn.
func TestBudgetCompactTakesTurns(t *testing.T) {
	b := NewMemoryBudget(16 << 20)
	letGo := holdThreads(t, b, b.Usage().MaxCompaction)
	db := openDir(t, "db", &Options{MemoryBudget: b, InMemory: true})
	require.NoError(t, loadShare(db, 0, 1000))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { failed <- db.Compact(ctx, nil, nil) }()
	storetest.Until(func() bool { return b.Usage().Waiting == 1 })
	require.NoError(t, checkShare(db, 0, 1000, 1000))
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	require.Zero(t, b.Usage().Waiting)
	go func() { failed <- db.Compact(t.Context(), nil, nil) }()
	storetest.Until(func() bool { return b.Usage().Waiting == 1 })
	letGo()
	require.NoError(t, <-failed)
	require.Equal(t, 1, len(db.Metrics().Runs))
	require.Zero(t, b.Usage().Compactions)
	require.NoError(t, db.Close())
	requireNothingCharged(t, b)
}

// A store that is closed while it waits for a thread does not wait for it, and leaves none taken.
func TestBudgetCloseWhileWaitingForAThread(t *testing.T) {
	withoutLeaks(func() {
		b := NewMemoryBudget(16 << 20)
		letGo := holdThreads(t, b, b.Usage().MaxCompaction)
		db := openDir(t, "db", &Options{MemoryBudget: b, InMemory: true, MemtableSize: 64 << 10,
			L0CompactionThreshold: 2, Compaction: Tiered})
		for i := range 4 {
			require.NoError(t, loadShare(db, i, 100))
			require.NoError(t, db.Flush(t.Context()))
		}
		storetest.Until(func() bool { return b.Usage().Waiting == 1 })
		failed := make(chan error)
		go func() { failed <- db.Compact(t.Context(), nil, nil) }()
		storetest.Until(func() bool { return b.Usage().Waiting == 2 })
		require.NoError(t, db.Close())
		require.ErrorIs(t, <-failed, ErrClosed)
		require.Zero(t, b.Usage().Waiting)
		letGo()
		requireNothingCharged(t, b)
	})
}

// Writers of a store whose level 0 is full wait as long as the store waits for a thread, and are not told that it is
// damaged.
func TestBudgetWritersWaitForAThread(t *testing.T) {
	b := NewMemoryBudget(16 << 20)
	letGo := holdThreads(t, b, b.Usage().MaxCompaction)
	o := &Options{MemoryBudget: b, InMemory: true, MemtableSize: 64 << 10, MaxMemtables: 2,
		L0CompactionThreshold: 1, L0SlowdownThreshold: 1, L0StopThreshold: 2}
	db := openDir(t, "db", o)
	failed := make(chan error)
	go func() { failed <- loadShare(db, 0, 3000) }()
	storetest.Until(func() bool {
		m := db.Metrics()
		return b.Usage().Waiting == 1 && m.Levels[0].Runs >= 2
	})
	db.mu.Lock()
	require.Zero(t, db.compactions.Running)
	require.True(t, compaction.Level0Over(db.current, o.L0StopThreshold))
	require.NoError(t, db.level0Stuck())
	db.mu.Unlock()
	letGo()
	require.NoError(t, <-failed)
	require.NoError(t, checkShare(db, 0, 3000, 3000))
	require.NoError(t, db.Close())
	requireNothingCharged(t, b)
}

// No more threads compact at any time than the budget has, whatever the stores.
func TestBudgetBoundsThreads(t *testing.T) {
	t.Parallel()
	const stores = 8
	keys := scale.Fewer(3000, 1000)
	b := NewMemoryBudget(16 << 20)
	var wg sync.WaitGroup
	var dbs []*DB
	for i := range stores {
		db := openDir(t, "db", &Options{MemoryBudget: b, InMemory: true, MemtableSize: 64 << 10,
			TargetFileSize: 64 << 10, BaseLevelSize: 64 << 10,
			MaxConcurrentCompactions: 4, Compaction: CompactionStyle(i % int(numCompactions))})
		dbs = append(dbs, db)
		wg.Go(func() {
			if err := loadShare(db, i, keys); err != nil {
				t.Error(err)
			}
		})
	}
	finished := make(chan struct{})
	go func() {
		wg.Wait()
		close(finished)
	}()
	for running := true; running; {
		select {
		case <-finished:
			running = false
		default:
		}
		u, n := b.Usage(), 0
		require.LessOrEqual(t, u.Compactions, b.Usage().MaxCompaction)
		for _, db := range dbs {
			n = max(n, db.Metrics().RunningCompactions)
		}
		require.LessOrEqual(t, n, b.Usage().MaxCompaction)
	}
	storetest.Until(func() bool { return b.Usage().Waiting == 0 && b.Usage().Compactions == 0 })
	for i, db := range dbs {
		require.NoError(t, checkShare(db, i, keys, keys))
		require.NoError(t, db.Close())
	}
	requireNothingCharged(t, b)
}
