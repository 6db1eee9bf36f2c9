package main

import (
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/examples/guard/internal/users"
)

// Users that are made in a database whose filters are there become known to them.
func TestMoreUsersInOldData(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	old := g.start(t, "--users=100").ready()
	old.require(404, old.get("/users/150"))
	more := g.start(t, "--users=200")
	for _, s := range []*service{old, more} {
		s.require(200, s.get("/users/150"))
		require.JSONEq(t, `{"name":"user150","taken":true}`, s.require(200, s.get("/names/user150")).body)
	}
}

// Rows that others wrote are unknown to the filters until these are loaded anew.
func TestRebuild(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	s := g.start(t, "--users=100").ready()
	inserted, err := s.Store.Insert(t.Context(), users.User{ID: 7777, Name: "behind-our-back"})
	require.NoError(t, err)
	require.True(t, inserted)
	banned, err := s.Store.Ban(t.Context(), 7)
	require.NoError(t, err)
	require.True(t, banned)
	s.require(404, s.get("/users/7777"))
	s.require(200, s.get("/users/7"))
	again := g.start(t, "--users=100", "--rebuild")
	require.NoError(t, again.Cache.Clear(t.Context()))
	for _, s := range []*service{again, s} {
		s.require(200, s.get("/users/7777"))
		s.require(403, s.get("/users/7"))
	}
}

func TestAnotherSizeIsRefused(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.start(t, "--users=100").ready()
	f := g.flags(t, "--users=100", "--capacity=5")
	_, err := openParts(t.Context(), f, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "--capacity")

	var stdout, stderr output
	status := run(t.Context(), append([]string{"--drop", "--users=100"}, g.args...), &stdout, &stderr)
	require.Zero(t, status, stderr.String())
	s := g.start(t, "--users=100", "--capacity=5").ready()
	s.require(200, s.get("/users/100"))
	s.require(404, s.get("/users/101"))
	require.NotZero(t, s.Counters.Users.No.Load())
}

// What was derived from a database that ends with the process ends with it too.
func TestTemporaryDatabaseLeavesNothing(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	var stdout, stderr output
	status := run(t.Context(), append([]string{"--normal=1s", "--redis", g.addr}, local...), &stdout, &stderr)
	require.Zero(t, status, stderr.String())
	client := redis.NewClient(&redis.Options{Addr: g.addr})
	defer func() { require.NoError(t, client.Close()) }()
	keys, err := client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	for _, key := range keys { // what tells other processes of a set that it was dropped, and feeds
		ttl, err := client.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		require.Positive(t, ttl, key)
		require.LessOrEqual(t, ttl, 8*24*time.Hour, key)
	}
}
