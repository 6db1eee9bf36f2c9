package guard

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/inprocess"
)

func newRows(t *testing.T) *rows {
	t.Helper()
	server, err := inprocess.Start()
	require.NoError(t, err)
	t.Cleanup(server.Close)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	c := NewCounters()
	return &rows{
		cache:    &Cache{Redis: client, TTL: time.Hour, NullTTL: time.Hour, Timeout: time.Hour},
		gate:     newGate(4, 4, &c.Database),
		counters: c, log: slog.New(slog.DiscardHandler), timeout: time.Hour,
	}
}

// Of many who want one key at the same time, one asks. If that one goes away, the
// others get their answer.
func TestOneOfManyAsks(t *testing.T) {
	r := newRows(t)
	const readers = 20
	begun, finish := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	ask := func(ctx context.Context) (string, bool, error) {
		begin()
		<-finish
		return "ann", true, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := r.read(ctx, "user:7", ask)
		first <- err
	}()
	<-begun
	answers, errs := make([]row, readers), make([]error, readers)
	var group sync.WaitGroup
	for i := range readers {
		group.Go(func() { answers[i], errs[i] = r.read(t.Context(), "user:7", ask) })
	}
	await(t, func() bool { return r.counters.Cache.Misses.Load() == readers+1 })
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	close(finish)
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	for _, answer := range answers {
		require.Equal(t, row{value: "ann", found: true}, answer)
	}
	queries := r.counters.Database.Queries.Load()
	require.Less(t, queries, uint64(readers), "a reader that missed the cache just before the end may ask again")
}

// An error is no answer: it is not kept, and the next reader asks again.
func TestErrorsAreNotKept(t *testing.T) {
	r := newRows(t)
	bad := errors.New("bad")
	_, err := r.read(t.Context(), "user:7", func(context.Context) (string, bool, error) { return "", false, bad })
	require.ErrorIs(t, err, bad)
	require.ErrorIs(t, err, ErrDatabase)
	good := func(context.Context) (string, bool, error) { return "ann", true, nil }
	answer, err := r.read(t.Context(), "user:7", good)
	require.NoError(t, err)
	require.Equal(t, "ann", answer.value)
	require.Zero(t, r.counters.Database.Empty.Load())
}
