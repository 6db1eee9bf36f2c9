package cuckootable

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/inprocess"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// onServers runs a test on a Redis server and on the one inside the process.
func onServers(t *testing.T, test func(t *testing.T, client *redis.Client)) {
	t.Run("server", func(t *testing.T) { test(t, redistest.Start(t).Client()) })
	t.Run("inprocess", func(t *testing.T) {
		server, err := inprocess.Start()
		require.NoError(t, err)
		t.Cleanup(server.Close)
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { _ = client.Close() })
		test(t, client)
	})
}

// A stored is a shard in Redis.
type stored struct {
	Shape
	client *redis.Client
	key    string
}

var shards, calls atomic.Int64 // that were given names

// store puts a blank shard into Redis under a name of its own.
func store(ctx context.Context, t require.TestingT, client *redis.Client, s Shape) *stored {
	require.NoError(t, s.Check())
	key := fmt.Sprintf("sk:{test/%d}:0", shards.Add(1))
	require.NoError(t, client.Set(ctx, key, s.Blank(), 0).Err())
	return &stored{s, client, key}
}

// A calling is a call with its script, and the number of its answers.
type calling struct {
	conn.Call
	op     conn.Script
	places int
}

// call returns a call of its own for some keys.
func (s *stored) call(op conn.Script, places ...Place) calling {
	return calling{s.Call(s.key, fmt.Sprintf("%s:@%d", s.key, calls.Add(1)), places...), op, len(places)}
}

// run makes a call as clients do.
func run(ctx context.Context, client *redis.Client, c calling) ([]Answer, error) {
	cmd := c.op.Short(ctx, c.Call)
	_ = client.Process(ctx, cmd)
	if conn.NoScript(cmd.Err()) {
		cmd = c.op.Long(ctx, c.Call)
		_ = client.Process(ctx, cmd)
	}
	return Answers(cmd, c.places)
}

// change makes a call and returns its answers.
func (s *stored) change(ctx context.Context, t require.TestingT, op conn.Script, places ...Place) []Answer {
	answers, err := run(ctx, s.client, s.call(op, places...))
	require.NoError(t, err)
	require.Len(t, answers, len(places))
	return answers
}

// copies looks a key up.
func (s *stored) copies(ctx context.Context, p Place) (int, error) {
	cmd := redis.NewIntSliceCmd(ctx, s.Lookup(s.key, p)...)
	if err := s.client.Process(ctx, cmd); err != nil {
		return 0, err
	}
	return s.Copies(cmd.Val(), p)
}

// bytes returns what is in Redis.
func (s *stored) bytes(ctx context.Context, t require.TestingT) []byte {
	data, err := s.client.Get(ctx, s.key).Bytes()
	require.NoError(t, err)
	return data
}

// table returns the shard as it is in Redis.
func (s *stored) table(ctx context.Context, t require.TestingT) *Table {
	table, err := s.Open(s.bytes(ctx, t), 0)
	require.NoError(t, err)
	return table
}
