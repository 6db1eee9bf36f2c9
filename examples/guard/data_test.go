package main

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/examples/guard/internal/servertest"
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

// A deploy with other sizes serves with the sets that are there, beside a process of the old ones, until it
// loads them.
func TestAnotherSizeComesWithALoad(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	old := g.start(t, "--users=100").ready()
	capacity := old.Filters.Metrics["users"]().Capacity
	next := g.start(t, "--users=100", "--capacity=5", "--rate=0.001").ready()
	require.Equal(t, capacity, next.Filters.Metrics["users"]().Capacity)
	next.require(200, next.get("/users/100"))
	again := g.start(t, "--users=100", "--capacity=5", "--rate=0.001", "--rebuild")
	for _, s := range []*service{again, next, old} {
		servertest.Await(t, func() bool { return s.Filters.Metrics["users"]().Capacity == 5 })
		s.require(200, s.get("/users/100"))
		s.require(404, s.get("/users/101"))
		require.NotZero(t, s.Counters.Users.No.Load())
	}
}

// A set that was dropped is made by the next process that opens it.
func TestDrop(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.start(t, "--users=100").ready()
	var stdout, stderr output
	status := run(t.Context(), append([]string{"--drop", "--users=100"}, g.args...), &stdout, &stderr)
	require.Zero(t, status, stderr.String())
	s := g.start(t, "--users=100", "--capacity=5").ready()
	require.Equal(t, 5, s.Filters.Metrics["users"]().Capacity)
	s.require(404, s.get("/users/101"))
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
