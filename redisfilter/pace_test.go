package redisfilter

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/inprocess"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
)

// Loads rest twice as long after each generation that did not last, until one did.
func TestThePaceOfLoads(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Now()
	p.uses("old", now)
	require.Zero(t, p.lost("old", now), "it was there before this process")
	require.False(t, p.resting("old", now))
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		g := strconv.Itoa(i)
		p.uses(g, now)
		now = now.Add(lasting / 2)
		require.Zero(t, p.lost("another", now))
		require.Equal(t, want*time.Second, p.lost(g, now))
		now = now.Add(want * time.Second)
		require.True(t, p.resting(g, now.Add(-1)))
		require.False(t, p.resting("another", now.Add(-1)))
		require.False(t, p.resting(g, now))
		require.False(t, p.resting("", now.Add(-1)), "the configuration was lost too")
	}
	p.uses("lasts", now)
	now = now.Add(lasting)
	require.Zero(t, p.lost("lasts", now))
	require.False(t, p.resting("lasts", now))
	p.uses("brief", now)
	require.Equal(t, time.Second, p.lost("brief", now))

	var fresh pace
	fresh.uses("", now)
	fresh.uses("first", now)
	require.Equal(t, time.Second, fresh.lost("first", now), "this process saw it begin")
}

// A set whose values go soon after each load does not read its source at once, and a program's Load does.
func TestAnEvictingServerIsLoadedAtAPace(t *testing.T) {
	t.Parallel()
	srv, err := inprocess.Start()
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	ctx, reads := t.Context(), atomic.Int32{}
	source := func(_ context.Context, _ time.Time, add func(...[]byte) error) error {
		reads.Add(1)
		return add(key(1))
	}
	c := openClient(t, srv.Addr())
	s := openSet(t, c, "s", 100, Options{Source: source})
	require.NoError(t, s.Ready(ctx))
	brief := func(n int) { // generations before this one did not last, nor does this one on a slow machine
		s.pace.mu.Lock()
		defer s.pace.mu.Unlock()
		s.pace.brief, s.pace.since = n, time.Now().Add(time.Hour)
	}
	brief(10)
	evict := func() {
		require.NoError(t, conn.Of(c).RDB.Del(ctx, shardsOf(t, s)...).Err())
		_, err := s.Contains(ctx, key(1))
		require.ErrorIs(t, err, ErrIncomplete)
	}
	evict()
	require.Equal(t, load, s.need(s.view.Load()))
	require.Equal(t, nothing, s.task(s.view.Load()))
	require.EqualValues(t, 1, reads.Load())
	require.NoError(t, s.Load(ctx, nil))
	require.EqualValues(t, 2, reads.Load())
	holds(t, s, key(1))

	brief(0)
	begun := time.Now()
	evict()
	require.NoError(t, s.Ready(ctx))
	require.EqualValues(t, 3, reads.Load())
	require.Greater(t, time.Since(begun), firstRest)
}
