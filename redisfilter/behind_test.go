package redisfilter

import (
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// An endpoint is an address that leads new connections to one server after the other, and leaves old ones alone.
type endpoint struct {
	net.Listener
	target atomic.Pointer[string]
}

func newEndpoint(t *testing.T, target string) *endpoint {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e := &endpoint{Listener: l}
	e.target.Store(&target)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go e.serve(from)
		}
	}()
	return e
}

func (e *endpoint) serve(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", *e.target.Load())
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		defer to.Close()
		_, _ = io.Copy(to, from)
	}()
	_, _ = io.Copy(from, to)
}

// A connection that was made before a failover leads to a server that is no master any more.
func TestConnectionsFromBeforeAFailoverDoNotSayNo(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	ctx := t.Context()
	first := redistest.Start(t)
	second := redistest.StartReplica(t, first)
	address := newEndpoint(t, first.Addr)
	c := openClient(t, address.Addr().String())
	s := wholeSet(t, c, "users", 1000, Options{Source: sourceOf()})
	k := absentKey(t, s)
	first.AwaitReplicas(ctx, 1)

	var old [4]*redis.Conn // connections of the pool that stay where they are
	for i := range old {
		old[i] = conn.Of(c).RDB.(*redis.Client).Conn()
		require.NoError(t, old[i].Ping(ctx).Err())
	}
	second.Promote(ctx)
	address.target.Store(&second.Addr)
	require.NoError(t, first.Client().Do(ctx, "replicaof", "127.0.0.1", "1").Err()) // does not hear of adds
	other := openSet(t, openClient(t, second.Addr), "users", 1000, Options{Source: sourceOf()})
	require.NoError(t, other.Ready(ctx)) // trusts the second
	require.NoError(t, other.Add(ctx, k))
	until(t, func() bool {
		identity, _, ok := conn.Of(c).Watch.Map().Owner(0)
		return ok && s.view.Load().trusted[identity] && s.view.Load().err == nil
	}, "the second is trusted")
	for _, conn := range old {
		_ = conn.Close() // back to the pool
	}
	for range 20 {
		maybe, err := s.Contains(ctx, k)
		require.True(t, maybe, "%v", err)
	}
}
