package redistest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStartGivesEachTestItsOwnEmptyServer(t *testing.T) {
	ctx := t.Context()
	a, b := Start(t), Start(t)
	require.NotEqual(t, a.Addr, b.Addr)
	require.NoError(t, a.Client().Set(ctx, "k", "v", 0).Err())
	n, err := b.Client().Exists(ctx, "k").Result()
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestARestartedServerIsEmptyUnlessItAppends(t *testing.T) {
	RequireReal(t)
	ctx := t.Context()
	for _, c := range []struct {
		args []string
		want int64
	}{
		{nil, 0},
		{[]string{"--appendonly", "yes", "--appendfsync", "always"}, 1},
	} {
		s := Start(t, c.args...)
		require.NoError(t, s.Client().Set(ctx, "k", "v", 0).Err())
		before := s.Info(ctx, "server")["run_id"]
		s.Restart()
		n, err := s.Client().Exists(ctx, "k").Result()
		require.NoError(t, err)
		require.Equal(t, c.want, n, "%v", c.args)
		require.NotEqual(t, before, s.Info(ctx, "server")["run_id"])
	}
}

func TestKillAndStopAreWhatAClientSees(t *testing.T) {
	RequireReal(t)
	s := Start(t)
	s.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.Error(t, s.Client().Ping(ctx).Err(), "stopped")
	s.Continue()
	require.NoError(t, s.Client().Ping(t.Context()).Err())
	s.Stop()
	s.Kill()
	require.ErrorContains(t, s.Client().Ping(t.Context()).Err(), "refused")
}

func TestMeasures(t *testing.T) {
	RequireReal(t)
	s := Start(t)
	ctx := t.Context()
	value := strings.Repeat("x", 4048)
	require.NoError(t, s.Client().Set(ctx, "k", value, 0).Err())
	require.Greater(t, s.MemoryUsage(ctx, "k"), int64(len(value)))
	require.Zero(t, s.MemoryUsage(ctx, "none"))
	s.ResetStats(ctx)
	before := s.CPU(ctx)
	pipe := s.Client().Pipeline()
	for range 10_000 {
		pipe.Get(ctx, "k")
	}
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(10_000), s.CommandCounts(ctx)["get"])
	require.Greater(t, s.CPU(ctx)-before, 100*time.Microsecond)
}
