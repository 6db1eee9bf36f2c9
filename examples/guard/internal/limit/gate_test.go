package limit_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/examples/guard/internal/limit"
)

// gauges are what a gate tells its observer.
type gauges struct {
	running, waiting atomic.Int64
	refused          atomic.Uint64
}

func (g *gauges) observer() limit.Observer {
	return limit.Observer{Running: &g.running, Waiting: &g.waiting, Refused: &g.refused}
}

// Of ten callers two work, three wait, and five are refused at once.
func TestGateBoundsWorkAndQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauges
		gate := limit.New(2, 3, g.observer())
		errs := make(chan error, 10)
		for range 10 {
			go func() {
				errs <- gate.Do(t.Context(), func(context.Context) error {
					time.Sleep(time.Second)
					return nil
				})
			}()
		}
		synctest.Wait()
		require.EqualValues(t, 2, g.running.Load())
		require.EqualValues(t, 3, g.waiting.Load())
		require.EqualValues(t, 5, g.refused.Load())
		require.Len(t, errs, 5, "those without a place in the queue do not wait")
		began := time.Now()
		for range 5 {
			require.ErrorIs(t, <-errs, limit.ErrFull)
		}
		for range 5 {
			require.NoError(t, <-errs)
		}
		require.Equal(t, 3*time.Second, time.Since(began), "five pieces of work, two at once")
		require.Zero(t, g.running.Load())
		require.Zero(t, g.waiting.Load())
	})
}

func TestGateWaitsNoLongerThanItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauges
		gate := limit.New(1, 1, g.observer())
		release := make(chan struct{})
		go func() {
			_ = gate.Do(t.Context(), func(context.Context) error {
				<-release
				return nil
			})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := gate.Do(ctx, func(context.Context) error { return errors.New("must not run") })
		require.ErrorIs(t, err, limit.ErrFull)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 1, g.refused.Load())
		require.Zero(t, g.waiting.Load())
		close(release)
		synctest.Wait()
		require.NoError(t, gate.Do(t.Context(), func(context.Context) error { return nil }), "the queue is empty again")
	})
}

// Work that fails or panics leaves its place to the next.
func TestGateGetsPlacesBack(t *testing.T) {
	var g gauges
	gate := limit.New(1, 0, g.observer())
	bad := errors.New("bad")
	require.ErrorIs(t, gate.Do(t.Context(), func(context.Context) error { return bad }), bad)
	require.Panics(t, func() { _ = gate.Do(t.Context(), func(context.Context) error { panic("worse") }) })
	require.NoError(t, gate.Do(t.Context(), func(context.Context) error { return nil }))
	require.Zero(t, g.refused.Load())
}
