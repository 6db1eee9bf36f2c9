package redisfilter

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// patience is longer than go test lets a test run: no test depends on how long something takes that must
// happen. It is for what needs a limit, such as operations; until waits without any.
const patience = 24 * time.Hour

// openClient returns a client that is closed with the test.
func openClient(t testing.TB, addrs ...string) *Client {
	t.Helper()
	c := redistest.Opened(t, Open, ErrUnavailable, &redis.UniversalOptions{Addrs: addrs})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// quiet returns options for a test: time enough for a slow machine, and no log.
func quiet(o Options) *Options {
	if o.Timeout == 0 {
		o.Timeout = patience
	}
	if o.Grace == 0 {
		o.Grace = time.Millisecond
	}
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	return &o
}

// openSet returns a set that is closed with the test.
func openSet(t testing.TB, c *Client, name string, n int, o Options) *Set {
	t.Helper()
	s, err := New(t.Context(), c, name, n, 0.01, quiet(o))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// wholeSet returns an empty set in use that does not mend itself unless the options say so.
func wholeSet(t testing.TB, c *Client, name string, n int, o Options) *Set {
	t.Helper()
	empty := o
	empty.StartEmpty, empty.Source = true, nil
	made, err := New(t.Context(), c, name, n, 0.01, quiet(empty))
	require.NoError(t, err)
	require.NoError(t, made.Close())
	return openSet(t, c, name, n, o)
}

// until waits for a condition, on the test's own goroutine.
func until(t testing.TB, condition func() bool, what string) {
	t.Helper()
	redistest.Await(t, what, condition)
}

func key(i int) []byte { return fmt.Appendf(nil, "key %d", i) }

func keysTo(n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = key(i)
	}
	return all
}

// sourceOf returns a source of fixed keys.
func sourceOf(keys ...[]byte) Source {
	return func(_ context.Context, _ time.Time, add func(keys ...[]byte) error) error { return add(keys...) }
}

// holds requires that a set says maybe, with no error, for all keys.
func holds(t testing.TB, s *Set, keys ...[]byte) {
	t.Helper()
	for i, maybe := range contains(t, s, keys...) {
		require.True(t, maybe, "%q", keys[i])
	}
}

func contains(t testing.TB, s *Set, keys ...[]byte) []bool {
	t.Helper()
	maybe, err := s.MContains(t.Context(), keys)
	require.NoError(t, err)
	return maybe
}

// absentKey returns a key that a set says no to.
func absentKey(t testing.TB, s *Set) []byte {
	t.Helper()
	for i := range 1000 {
		k := fmt.Appendf(nil, "absent %d", i)
		if maybe, err := s.Contains(t.Context(), k); err == nil && !maybe {
			return k
		}
	}
	t.Fatal("the set says maybe to everything")
	return nil
}

// shardsOf returns the keys of a set's shards in Redis.
func shardsOf(t testing.TB, s *Set) (all []string) {
	t.Helper()
	v := s.view.Load()
	err := v.content.(partitions).survey(t.Context(), v.cfg.Generation, false, func(st shard) error {
		all = append(all, st.key)
		return nil
	})
	require.NoError(t, err)
	return all
}

// A gate is a hook that lets a test step between a client and its server.
type gate struct {
	match  func(redis.Cmder) bool
	before func()                            // the commands are sent
	after  func()                            // they were answered
	swap   func([]redis.Cmder) []redis.Cmder // sends other commands of a pipeline, those among them
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return g.pass([]redis.Cmder{cmd}, func([]redis.Cmder) error { return next(ctx, cmd) })
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return g.pass(cmds, func(cmds []redis.Cmder) error { return next(ctx, cmds) })
	}
}

func (g *gate) pass(cmds []redis.Cmder, next func([]redis.Cmder) error) error {
	matched := false
	for _, cmd := range cmds {
		matched = matched || g.match(cmd)
	}
	if !matched {
		return next(cmds)
	}
	if g.before != nil {
		g.before()
	}
	if g.swap != nil {
		cmds = g.swap(cmds)
	}
	err := next(cmds)
	if g.after != nil {
		g.after()
	}
	return err
}

// firstOnly makes a function that calls f once.
func firstOnly(f func()) func() {
	var once sync.Once
	return func() { once.Do(f) }
}

func named(name string) func(redis.Cmder) bool {
	return func(cmd redis.Cmder) bool { return cmd.Name() == name }
}

func startServer(t testing.TB, args ...string) *redistest.Server {
	t.Helper()
	redistest.RequireReal(t)
	return redistest.Start(t, args...)
}
