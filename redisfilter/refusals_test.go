package redisfilter

import (
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// A Redis that refuses is not one that is away: a caller that tries until it is back would try forever.
func TestRefusals(t *testing.T) {
	t.Parallel()
	refused := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, ErrRefused)
		require.NotErrorIs(t, err, ErrUnavailable)
	}
	open := func(password string, addrs ...string) (*Client, error) {
		return Open(t.Context(), redistest.Patient(&redis.UniversalOptions{Addrs: addrs, Password: password}))
	}
	ctx, server := t.Context(), startServer(t)
	s := wholeSet(t, openClient(t, server.Addr), "users", 100, Options{})
	admin := server.Client()
	require.NoError(t, admin.Do(ctx, "acl", "setuser", "default", "-bitfield").Err())
	refused(s.Add(ctx, key(1)))
	require.NoError(t, admin.Do(ctx, "acl", "setuser", "default", "+@all", "resetpass", ">word").Err())
	_, err := open("", server.Addr)
	refused(err)
	_, err = open("other", server.Addr)
	refused(err)

	lacks := startServer(t, "--rename-command", "bitfield", "")
	refused(wholeSet(t, openClient(t, lacks.Addr), "users", 100, Options{}).Add(ctx, key(1)))
}

// Scripts are refused as their commands are.
func TestRefusalsOfScripts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	growing := func(server *redistest.Server) error {
		_, err := wholeSet(t, openClient(t, server.Addr), "users", 100, Options{Growth: 2}).AddNew(ctx, key(1))
		return err
	}
	require.ErrorIs(t, growing(startServer(t, "--rename-command", "bitfield", "")), ErrRefused)
	server := startServer(t)
	require.NoError(t, server.Client().Do(ctx, "acl", "setuser", "default", "-bitfield").Err())
	require.ErrorIs(t, growing(server), ErrRefused)
}

// A replica refuses writes for as long as the program is not given its master's address.
func TestAReplicaIsNoMaster(t *testing.T) {
	t.Parallel()
	ctx, master := t.Context(), startServer(t)
	replica := redistest.StartReplica(t, master)
	_, err := Open(ctx, redistest.Patient(&redis.UniversalOptions{Addrs: []string{replica.Addr}}))
	require.ErrorIs(t, err, ErrRefused)
	require.NotErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "READONLY")

	s := wholeSet(t, openClient(t, master.Addr), "users", 100, Options{})
	require.NoError(t, master.Client().Do(ctx, "replicaof", "127.0.0.1", "1").Err())
	for range 3 { // the first may be sent before a poll hears of it
		err = s.Add(ctx, key(1))
		require.ErrorIs(t, err, ErrRefused)
		require.NotErrorIs(t, err, ErrUnavailable)
		require.NoError(t, s.client.Watch.Poll(ctx))
	}
	_, err = s.Contains(ctx, key(1))
	require.ErrorIs(t, err, ErrRefused)

	dials := &redis.UniversalOptions{Addrs: []string{replica.Addr}, Dialer: (&net.Dialer{}).DialContext}
	c, err := Open(ctx, redistest.Patient(dials))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = New(ctx, c, "others", 100, 0.01, quiet(Options{StartEmpty: true}))
	require.ErrorIs(t, err, ErrUnavailable, "the next connection may lead to the master")
}

// A node of a cluster that was given as a server refuses what other nodes have.
func TestANodeIsNoServer(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	c := openClient(t, cluster.Servers[0].Addr)
	var errs []error
	for _, name := range []string{"a", "b", "c", "d"} { // not all are of its slots
		_, err := New(t.Context(), c, name, 100, 0.01, quiet(Options{StartEmpty: true}))
		errs = append(errs, err)
	}
	for _, err := range errs {
		require.NotErrorIs(t, err, ErrUnavailable)
	}
	require.Condition(t, func() bool {
		for _, err := range errs {
			if err != nil {
				return true
			}
		}
		return false
	})
}

// A load without any source would make the set say no to everything.
func TestALoadNeedsASource(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), openClient(t, startServer(t).Addr)
	without := openSet(t, c, "without", 100, Options{})
	require.ErrorContains(t, without.Load(ctx, nil), "source")
	maybe, err := without.Contains(ctx, key(1))
	require.True(t, maybe)
	require.ErrorIs(t, err, ErrIncomplete)
	with := openSet(t, c, "with", 100, Options{Source: sourceOf(key(1))})
	require.NoError(t, with.Load(ctx, nil))
	holds(t, with, key(1))
}
