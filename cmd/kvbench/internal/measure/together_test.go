package measure

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTogetherRunsAllAtOnce(t *testing.T) {
	for _, n := range []int{1, 2, 9} {
		var ran atomic.Int32
		all := make(chan struct{})
		require.NoError(t, Together(t.Context(), n, func(_ context.Context, worker int) error {
			require.Less(t, worker, n)
			if ran.Add(1) == int32(n) {
				close(all)
			}
			<-all // each waits for the last
			return nil
		}))
		require.EqualValues(t, n, ran.Load())
	}
}

func TestTheFirstErrorEndsTheOthers(t *testing.T) {
	broken := errors.New("broken")
	for range 50 {
		err := Together(t.Context(), 4, func(ctx context.Context, worker int) error {
			if worker == 2 {
				return broken
			}
			<-ctx.Done()
			return ctx.Err()
		})
		require.ErrorIs(t, err, broken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Together(ctx, 3, func(ctx context.Context, _ int) error { return ctx.Err() })
	require.ErrorIs(t, err, context.Canceled)
}
