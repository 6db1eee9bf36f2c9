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
