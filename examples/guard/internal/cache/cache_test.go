package cache_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/inprocess"

	"github.com/siftkv/siftkv/examples/guard/internal/cache"
	"github.com/siftkv/siftkv/examples/guard/internal/servertest"
)

// start returns a cache on a Redis of its own, its client, and what ends the server.
func start(t *testing.T, c cache.Config) (*cache.Cache, *redis.Client, func()) {
	t.Helper()
	var addr string
	var end func()
	if server := servertest.Redis(t); server != nil {
		addr, end = server.Addr, server.Kill
	} else {
		server, err := inprocess.Start()
		require.NoError(t, err)
		t.Cleanup(server.Close)
		addr, end = server.Addr(), server.Close
	}
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	return cache.New(client, c), client, end
}

var hour = cache.Config{Prefix: "p:", TTL: time.Hour, NullTTL: time.Minute, Timeout: time.Hour}

// require's view of one entry.
func requireEntry(t *testing.T, c *cache.Cache, key, value string, state cache.State) {
	t.Helper()
	v, s, err := c.Get(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, state, s)
	require.Equal(t, value, v)
}

func TestEntries(t *testing.T) {
	c, _, _ := start(t, hour)
	ctx := t.Context()
	requireEntry(t, c, "a", "", cache.Missing)
	require.NoError(t, c.Fill(ctx, "a", "", false))
	requireEntry(t, c, "a", "", cache.Null)
	require.NoError(t, c.Fill(ctx, "empty", "", true))
	requireEntry(t, c, "empty", "", cache.Found)
	require.NoError(t, c.Fill(ctx, "b", "-", true))
	requireEntry(t, c, "b", "-", cache.Found)
}

// A reader who asked before a write, and fills after it, hides nothing.
func TestFillReplacesNothing(t *testing.T) {
	c, _, _ := start(t, hour)
	ctx := t.Context()
	require.NoError(t, c.Put(ctx, "a", "new", true))
	require.NoError(t, c.Fill(ctx, "a", "", false))
	requireEntry(t, c, "a", "new", cache.Found)
	require.NoError(t, c.Put(ctx, "a", "", false))
	require.NoError(t, c.Fill(ctx, "a", "old", true))
	requireEntry(t, c, "a", "", cache.Null)
}

func TestLifetimes(t *testing.T) {
	c, client, _ := start(t, hour)
	ctx := t.Context()
	begun := time.Now()
	require.NoError(t, c.Fill(ctx, "null", "", false))
	require.NoError(t, c.Fill(ctx, "row", "x", true))
	ttl, err := client.PTTL(ctx, "p:null").Result()
	require.NoError(t, err)
	require.InDelta(t, time.Minute, ttl, float64(time.Since(begun)+time.Millisecond))
	ttl, err = client.PTTL(ctx, "p:row").Result()
	require.NoError(t, err)
	require.InDelta(t, time.Hour, ttl, float64(6*time.Minute+time.Since(begun)+time.Millisecond), "within a tenth")
}

func TestNullsEnd(t *testing.T) {
	short := hour
	short.NullTTL = time.Millisecond
	c, _, _ := start(t, short)
	require.NoError(t, c.Fill(t.Context(), "a", "", false))
	servertest.Await(t, func() bool {
		_, state, err := c.Get(t.Context(), "a")
		return err == nil && state == cache.Missing
	})
}

// What others wrote under our keys is an error and no answer.
func TestForeignEntries(t *testing.T) {
	c, client, _ := start(t, hour)
	ctx := t.Context()
	for _, entry := range []string{"", "x", "--", "-a", "\x00", "{}"} {
		require.NoError(t, client.Set(ctx, "p:a", entry, 0).Err())
		_, state, err := c.Get(ctx, "a")
		require.ErrorIs(t, err, cache.ErrForeign, "%q", entry)
		require.Equal(t, cache.Missing, state)
	}
	require.NoError(t, client.RPush(ctx, "p:list", "+").Err())
	_, state, err := c.Get(ctx, "list")
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Equal(t, cache.Missing, state)
}

func TestServerAway(t *testing.T) {
	c, _, end := start(t, hour)
	end()
	_, state, err := c.Get(t.Context(), "a")
	require.ErrorContains(t, err, `read "p:a"`)
	require.Equal(t, cache.Missing, state)
	require.ErrorContains(t, c.Put(t.Context(), "a", "x", true), `write "p:a"`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = c.Get(ctx, "a")
	require.ErrorIs(t, err, context.Canceled)
}

func TestClearKeepsTheRest(t *testing.T) {
	c, client, _ := start(t, hour)
	ctx := t.Context()
	for i := range 2500 { // more than one step of a scan
		require.NoError(t, c.Fill(ctx, string(rune('a'+i)), "x", true))
	}
	require.NoError(t, client.Set(ctx, "other", "x", 0).Err())
	require.NoError(t, c.Clear(ctx))
	keys, err := client.Keys(ctx, "*").Result()
	require.NoError(t, err)
	require.Equal(t, []string{"other"}, keys)
}
