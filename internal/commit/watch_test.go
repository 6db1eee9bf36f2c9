package commit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

// No waiter misses what it waits for, however the last Notify falls.
func TestWatchMissesNothing(t *testing.T) {
	var w Watch
	var at atomic.Int64
	var waiters sync.WaitGroup
	const last = 2000
	for range 4 {
		waiters.Go(func() {
			for seen := int64(0); seen < last; seen = at.Load() {
				assertWait(t, &w, func() bool { return at.Load() > seen })
			}
		})
	}
	for range last {
		at.Add(1)
		w.Notify()
	}
	waiters.Wait()
}

func assertWait(t *testing.T, w *Watch, done func() bool) {
	t.Helper()
	if err := w.Wait(t.Context(), done); err != nil {
		t.Error(err)
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	var w Watch
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err := w.Wait(ctx, func() bool { asked++; cancel(); return false })
	require.ErrorIs(t, err, base.ErrContextEnded)
	require.Equal(t, 1, asked)
	require.NoError(t, w.Wait(ctx, func() bool { return true }))
}

// A log that ended is made durable while others go on. One that is in tables may have been closed without that.
func TestSyncEnded(t *testing.T) {
	s := newTestStore(t)
	for num := uint64(2); num <= 4; num++ {
		require.NoError(t, s.Commit(t.Context(), newBatch(base.KindSet, "k"), nil, Written))
		require.NoError(t, s.Exclusive(t.Context(), func() error {
			if err := s.Log().End(); err != nil {
				return err
			}
			s.SwitchLog(s.newLog(t, num))
			return nil
		}))
	}
	closed := s.logs.ended[0]
	require.NoError(t, closed.CloseFile()) // as one in tables is, which a caller still has in its list
	for _, flushed := range []uint64{0, 2} {
		s.flushed = flushed
		require.NoError(t, s.SyncEnded(3))
	}
	require.False(t, closed.Synced())
	require.True(t, s.logs.ended[1].Synced())
	require.True(t, s.logs.ended[2].Synced())
	require.NoError(t, s.failed)
	s.logs.ended[2].Break(base.ErrCorruption)
	require.NoError(t, s.Commit(t.Context(), newBatch(base.KindSet, "k"), nil, Written))
	require.ErrorIs(t, s.SyncEnded(3), base.ErrCorruption)
	require.Error(t, s.failed)
}
