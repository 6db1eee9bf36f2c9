package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
)

// Rows that others wrote are unknown to the filters until these are loaded anew.
func TestRebuild(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	s := g.start(t, "--users=100").ready()
	inserted, err := s.Store.Insert(t.Context(), guard.User{ID: 7777, Name: "behind-our-back"})
	require.NoError(t, err)
	require.True(t, inserted)
	banned, err := s.Store.Ban(t.Context(), 7)
	require.NoError(t, err)
	require.True(t, banned)
	s.require(404, s.get("/users/7777"))
	s.require(200, s.get("/users/7"))
	again := g.start(t, "--users=100", "--rebuild")
	require.NoError(t, again.Cache.Redis.Del(t.Context(), again.Cache.Prefix+"ban:7").Err())
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
		await(t, func() bool { return s.Filters.Metrics["users"]().Capacity == 5 })
		s.require(200, s.get("/users/100"))
		s.require(404, s.get("/users/101"))
		require.NotZero(t, s.Counters.Users.No.Load())
	}
}
