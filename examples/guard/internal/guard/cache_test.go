package guard

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/inprocess"
)

// startCache returns a cache on a Redis of its own, and what ends the server.
func startCache(t *testing.T, c Cache) (*Cache, func()) {
	t.Helper()
	server, err := inprocess.Start()
	require.NoError(t, err)
	t.Cleanup(server.Close)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Redis.Close() })
	c.Redis = client
	return &c, server.Close
}

var hour = Cache{Prefix: "p:", TTL: time.Hour, NullTTL: time.Minute, Timeout: time.Hour}

// requireEntry checks what the cache knows of a key.
func requireEntry(t *testing.T, c *Cache, key string, want row, known bool) {
	t.Helper()
	answer, isKnown, err := c.get(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, known, isKnown)
	require.Equal(t, want, answer)
}

func TestEntries(t *testing.T) {
	c, _ := startCache(t, hour)
	ctx := t.Context()
	requireEntry(t, c, "a", row{}, false)
	require.NoError(t, c.set(ctx, "a", row{"", false}, fill))
	requireEntry(t, c, "a", row{}, true)
	require.NoError(t, c.set(ctx, "empty", row{"", true}, fill))
	requireEntry(t, c, "empty", row{"", true}, true)
	require.NoError(t, c.set(ctx, "b", row{"-", true}, fill))
	requireEntry(t, c, "b", row{"-", true}, true)
}

// A reader who asked before a write, and fills after it, hides nothing.
func TestFillReplacesNothing(t *testing.T) {
	c, _ := startCache(t, hour)
	ctx := t.Context()
	require.NoError(t, c.set(ctx, "a", row{"new", true}, put))
	require.NoError(t, c.set(ctx, "a", row{"", false}, fill))
	requireEntry(t, c, "a", row{"new", true}, true)
	require.NoError(t, c.set(ctx, "a", row{"", false}, put))
	require.NoError(t, c.set(ctx, "a", row{"old", true}, fill))
	requireEntry(t, c, "a", row{}, true)
}

func TestLifetimes(t *testing.T) {
	c, _ := startCache(t, hour)
	ctx := t.Context()
	begun := time.Now()
	require.NoError(t, c.set(ctx, "null", row{"", false}, fill))
	require.NoError(t, c.set(ctx, "row", row{"x", true}, fill))
	ttl, err := c.Redis.PTTL(ctx, "p:null").Result()
	require.NoError(t, err)
	require.InDelta(t, time.Minute, ttl, float64(time.Since(begun)+time.Millisecond))
	ttl, err = c.Redis.PTTL(ctx, "p:row").Result()
	require.NoError(t, err)
	require.InDelta(t, time.Hour, ttl, float64(6*time.Minute+time.Since(begun)+time.Millisecond), "within a tenth")
}

func TestNullsEnd(t *testing.T) {
	short := hour
	short.NullTTL = time.Millisecond
	c, _ := startCache(t, short)
	require.NoError(t, c.set(t.Context(), "a", row{"", false}, fill))
	await(t, func() bool {
		_, known, err := c.get(t.Context(), "a")
		return err == nil && !known
	})
}

// What others wrote under our keys is an error and no answer.
func TestForeignEntries(t *testing.T) {
	c, _ := startCache(t, hour)
	ctx := t.Context()
	for _, entry := range []string{"", "x", "--", "-a", "\x00", "{}"} {
		require.NoError(t, c.Redis.Set(ctx, "p:a", entry, 0).Err())
		_, known, err := c.get(ctx, "a")
		require.ErrorContains(t, err, "which no cache wrote", "%q", entry)
		require.False(t, known)
	}
	require.NoError(t, c.Redis.RPush(ctx, "p:list", "+").Err())
	_, known, err := c.get(ctx, "list")
	require.ErrorContains(t, err, "WRONGTYPE")
	require.False(t, known)
}

func TestServerAway(t *testing.T) {
	c, end := startCache(t, hour)
	end()
	_, known, err := c.get(t.Context(), "a")
	require.ErrorContains(t, err, `read "p:a"`)
	require.False(t, known)
	require.ErrorContains(t, c.set(t.Context(), "a", row{"x", true}, put), `write "p:a"`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = c.get(ctx, "a")
	require.ErrorIs(t, err, context.Canceled)
}
