package redisfilter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// A value of another type is another program's, and Redis is not away for it.
func TestValuesOfOtherTypesAreForeign(t *testing.T) {
	t.Parallel()
	ctx, server := t.Context(), redistest.Start(t)
	// It has no source, so that it does not load itself.
	s, err := New(ctx, openClient(t, server.Addr), "typed", 100, 0.01, quiet(Options{}))
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Load(ctx, sourceOf()))
	v := s.view.Load()
	shard := v.content.(partitions).Prefix(0, v.cfg.Generation) + "0"
	require.NoError(t, server.Client().Del(ctx, shard).Err())
	require.NoError(t, server.Client().LPush(ctx, shard, "a list").Err())
	maybe, err := s.Contains(ctx, []byte("key"))
	require.True(t, maybe)
	require.ErrorIs(t, err, ErrForeign)
	require.NotErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, s.Add(ctx, []byte("key")), ErrForeign)
}
