package guard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Of ten callers two work, three wait, and five are refused at once.
func TestGateBoundsWorkAndQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g DatabaseCounters
		gate := newGate(2, 3, &g)
		errs := make(chan error, 10)
		for range 10 {
			go func() {
				errs <- gate.do(t.Context(), func(context.Context) error {
					time.Sleep(time.Second)
					return nil
				})
			}()
		}
		synctest.Wait()
		require.EqualValues(t, 2, g.Running.Load())
		require.EqualValues(t, 3, g.Waiting.Load())
		require.EqualValues(t, 5, g.Shed.Load())
		require.Len(t, errs, 5, "those without a place in the queue do not wait")
		began := time.Now()
		for range 5 {
			require.ErrorIs(t, <-errs, ErrOverload)
		}
		for range 5 {
			require.NoError(t, <-errs)
		}
		require.Equal(t, 3*time.Second, time.Since(began), "five pieces of work, two at once")
		require.Zero(t, g.Running.Load())
		require.Zero(t, g.Waiting.Load())
	})
}

func TestGateWaitsNoLongerThanItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g DatabaseCounters
		gate := newGate(1, 1, &g)
		release := make(chan struct{})
		go func() {
			_ = gate.do(t.Context(), func(context.Context) error {
				<-release
				return nil
			})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := gate.do(ctx, func(context.Context) error { return errors.New("must not run") })
		require.ErrorIs(t, err, ErrOverload)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 1, g.Shed.Load())
		require.Zero(t, g.Waiting.Load())
		close(release)
		synctest.Wait()
		require.NoError(t, gate.do(t.Context(), func(context.Context) error { return nil }), "the queue is empty again")
	})
}

// Work that fails or panics leaves its place to the next.
func TestGateGetsPlacesBack(t *testing.T) {
	var g DatabaseCounters
	gate := newGate(1, 0, &g)
	bad := errors.New("bad")
	require.ErrorIs(t, gate.do(t.Context(), func(context.Context) error { return bad }), bad)
	require.Panics(t, func() { _ = gate.do(t.Context(), func(context.Context) error { panic("worse") }) })
	require.NoError(t, gate.do(t.Context(), func(context.Context) error { return nil }))
	require.Zero(t, g.Shed.Load())
}
