package redisfilter

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Metrics tell whether a set is whole, what it lost, and which loads failed.
func TestMetrics(t *testing.T) {
	t.Parallel()
	ctx, server := t.Context(), startServer(t)
	s := openSet(t, openClient(t, server.Addr), "users", 100, Options{})
	require.Equal(t, Metrics{Capacity: 100}, s.Metrics())
	_, err := s.MContains(ctx, keysTo(3))
	require.ErrorIs(t, err, ErrIncomplete)
	require.NoError(t, s.Load(ctx, sourceOf(keysTo(10)...)))
	require.Error(t, s.Load(ctx, nil))
	require.NoError(t, s.MAdd(ctx, keysTo(20)))
	holds(t, s, keysTo(20)...)
	absentKey(t, s)
	require.Equal(t, Metrics{Loaded: true, Capacity: 100}, s.Metrics())

	require.NoError(t, server.Client().Del(ctx, shardsOf(t, s)...).Err())
	_, err = s.Contains(ctx, key(1))
	require.ErrorIs(t, err, ErrIncomplete)
	failed := errors.New("the database is away")
	require.ErrorIs(t, s.Load(ctx, func(context.Context, time.Time, func(...[]byte) error) error {
		return failed
	}), failed)
	m := s.Metrics()
	require.False(t, m.Loaded)
	require.EqualValues(t, 1, m.Losses)
	require.EqualValues(t, 1, m.FailedLoads)
}

// A cuckoo set that refused a key is full until its next load is in use.
func TestMetricsOfAFullSet(t *testing.T) {
	t.Parallel()
	ctx, addr := t.Context(), startServer(t).Addr
	k, err := NewCuckoo(ctx, openClient(t, addr), "banned", 500, 0.001, quiet(Options{}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = k.Close() })
	require.NoError(t, k.Load(ctx, sourceOf(keysTo(10)...)))
	require.False(t, k.Metrics().Full)
	err = k.MAdd(ctx, keysTo(2000))
	require.ErrorIs(t, err, ErrFull)
	m := k.Metrics()
	require.True(t, m.Full)
	require.True(t, m.Loaded)
	require.NoError(t, k.Load(ctx, sourceOf(keysTo(2000)...)))
	m = k.Metrics()
	require.False(t, m.Full)
	require.Greater(t, m.Capacity, 500)
}
