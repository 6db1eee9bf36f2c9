package redisfilter

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// generationsIn returns the generations that the keys of a server belong to.
func generationsIn(t *testing.T, client *redis.Client) (all []string) {
	t.Helper()
	keys, err := client.Keys(t.Context(), "sk:{*/0}:*:0").Result()
	require.NoError(t, err)
	for _, k := range keys {
		all = append(all, strings.Split(k, ":")[2])
	}
	return all
}

// A process that ends while it loads a set, wherever it is then, leaves nothing for long: any other
// process that has the set removes it.
func TestAnEndedLoadLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, load := range map[string]func(*Set){
		"before it tells of its generation": func(*Set) {},
		"while it loads": func(s *Set) {
			g := generationsIn(t, s.client.RDB.(*redis.Client))
			cfg := s.view.Load().cfg
			_, err := s.publish(t.Context(), cfg, func(c *config.Config) { c.Building = other(g, cfg.Generation) })
			require.NoError(t, err)
		},
		"before it removes what was in use": func(s *Set) {
			g := generationsIn(t, s.client.RDB.(*redis.Client))
			cfg := s.view.Load().cfg
			_, err := s.publish(t.Context(), cfg, func(c *config.Config) { c.Generation = other(g, cfg.Generation) })
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := startServer(t)
			ended := wholeSet(t, openClient(t, srv.Addr), "users", 1000, Options{})
			lives := openSet(t, openClient(t, srv.Addr), "users", 1000, Options{})
			_, _, err := ended.makeBlank(t.Context(), ended.view.Load())
			require.NoError(t, err)
			load(ended)
			require.NoError(t, ended.Close())
			require.Len(t, generationsIn(t, srv.Client()), 2)
			until(t, func() bool { return len(generationsIn(t, srv.Client())) == 1 }, "what was left is removed")
			require.NoError(t, lives.client.Watch.Poll(t.Context()))
			require.Equal(t, []string{lives.view.Load().cfg.Generation}, generationsIn(t, srv.Client()))
			holds(t, lives)
		})
	}
}

func other(all []string, than string) string {
	for _, g := range all {
		if g != than {
			return g
		}
	}
	return ""
}

// A Drop that was broken off is completed by the next.
func TestDropCanBeRepeated(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	c := openClient(t, srv.Addr)
	s := wholeSet(t, c, "users", 1000, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	conn.Of(c).RDB.AddHook(&gate{match: named("exec"), after: cancel})
	require.ErrorIs(t, s.Drop(ctx), context.Canceled)
	require.Len(t, generationsIn(t, srv.Client()), 1)
	require.NoError(t, s.Drop(t.Context()))
	keys, err := srv.Client().Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Equal(t, []string{layout.ConfigKey("users")}, keys, "what tells others of the end")
	require.NoError(t, s.Drop(t.Context()))
}

// The header of a chain tells of its layers, and Redis keeps each until it is removed.
func TestARemovalThatIsBrokenOffLosesNoLayer(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	c := openClient(t, srv.Addr)
	s := wholeSet(t, c, "users", 30, Options{Growth: 20, ShardBytes: 80})
	require.NoError(t, s.MAdd(t.Context(), keysTo(1000)))
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, info.Layers, 3)
	require.Greater(t, info.Shards, 256, "one trip does not remove them")
	ctx, cancel := context.WithCancel(t.Context())
	conn.Of(c).RDB.AddHook(&gate{match: named("unlink"), after: cancel})
	require.ErrorIs(t, s.Drop(ctx), context.Canceled)
	require.NoError(t, s.Drop(t.Context()))
	keys, err := srv.Client().Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Equal(t, []string{layout.ConfigKey("users")}, keys)
}

// What another process adds to a set that it does not know to be dropped does not stay.
func TestDropTakesLateAddsAway(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	c, late := openClient(t, srv.Addr), openClient(t, srv.Addr)
	s, adding := wholeSet(t, c, "users", 1000, Options{}), openSet(t, late, "users", 1000, Options{})
	conn.Of(c).RDB.AddHook(&gate{match: named("unlink"), before: firstOnly(func() {
		v := adding.view.Load()
		require.False(t, conn.Of(late).Watch.Valid(v.confirmed) && v.err == nil, "it may still add")
	})})
	require.NoError(t, s.Drop(t.Context()))
}
