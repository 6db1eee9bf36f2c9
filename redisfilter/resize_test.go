package redisfilter

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/inprocess"
)

// A shaped is what sets of all kinds have that processes open with other sizes.
type shaped interface {
	Add(ctx context.Context, key []byte) error
	Contains(ctx context.Context, key []byte) (bool, error)
	MContains(ctx context.Context, keys [][]byte) ([]bool, error)
	Load(ctx context.Context, source Source) error
	Info(ctx context.Context) (Info, error)
}

// resizes has two processes that asked for different shapes add and ask before, while and after the second and
// then the first loads the set: nothing is denied.
func resizes(t *testing.T, rows *table, old, other shaped) {
	ctx := t.Context()
	var stop atomic.Bool
	var group sync.WaitGroup
	halt := func() {
		stop.Store(true)
		group.Wait()
	}
	defer halt()
	for i, from := range []shaped{old, other} {
		to := []shaped{other, old}[i]
		group.Go(func() {
			for n := 0; !stop.Load(); n++ {
				key := fmt.Appendf(nil, "%d of %d", n, i)
				if err := from.Add(ctx, key); err != nil {
					t.Errorf("add %s: %v", key, err)
					return
				}
				rows.insert(key)
				if maybe, err := to.Contains(ctx, key); !maybe || err != nil {
					t.Errorf("%s: %v, %v", key, maybe, err)
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	first, err := other.Info(ctx)
	require.NoError(t, err)
	require.NoError(t, other.Load(ctx, rows.source))
	info, err := other.Info(ctx)
	require.NoError(t, err)
	require.NotEqual(t, first.Rate, info.Rate)
	require.NotEqual(t, first.Bytes, info.Bytes)
	require.NoError(t, old.Load(ctx, rows.source))
	again, err := old.Info(ctx)
	require.NoError(t, err)
	require.InDelta(t, first.Rate, again.Rate, 0)
	halt()
	for _, s := range []shaped{old, other} {
		maybe, err := s.MContains(ctx, rows.rows)
		require.NoError(t, err)
		require.NotContains(t, maybe, false)
		require.NotEmpty(t, maybe)
		_, err = s.Contains(ctx, []byte("absent"))
		require.NoError(t, err)
	}
}

func TestSetsChangeTheirShapeOnline(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		n    int
		rate float64
		o    Options
	}{
		"size and rate": {50_000, 0.001, Options{}},
		"growing":       {2000, 0.002, Options{Growth: 2, Partitions: 7, ShardBytes: 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, err := inprocess.Start()
			require.NoError(t, err)
			t.Cleanup(srv.Close)
			rows := &table{rows: keysTo(100)}
			old := openSet(t, openClient(t, srv.Addr()), "s", 1000, Options{})
			require.NoError(t, old.Load(t.Context(), rows.source))
			other, err := New(t.Context(), openClient(t, srv.Addr()), "s", test.n, test.rate, quiet(test.o))
			require.NoError(t, err)
			t.Cleanup(func() { _ = other.Close() })
			require.Equal(t, 1000, other.Metrics().Capacity)
			resizes(t, rows, old, other)
			require.Equal(t, 1000, old.Metrics().Capacity)
		})
	}
}

func TestCuckooSetsChangeTheirShapeOnline(t *testing.T) {
	t.Parallel()
	addr := startServer(t).Addr
	rows := &table{rows: keysTo(100)}
	open := func(rate float64, o Options) *Cuckoo {
		k, err := NewCuckoo(t.Context(), openClient(t, addr), "s", 3000, rate, quiet(o))
		require.NoError(t, err)
		t.Cleanup(func() { _ = k.Close() })
		return k
	}
	old := open(0.01, Options{})
	require.NoError(t, old.Load(t.Context(), rows.source))
	other := open(0.0001, Options{Partitions: 5, ShardBytes: 2000})
	resizes(t, rows, old, other)
	for _, key := range rows.rows {
		removed, err := other.Remove(t.Context(), key)
		require.NoError(t, err)
		require.True(t, removed)
	}
}

// What decides a key's hash is no matter of a load, and is named.
func TestMismatchesHaveNames(t *testing.T) {
	t.Parallel()
	srv, err := inprocess.Start()
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	ctx, c := t.Context(), openClient(t, srv.Addr())
	_ = openSet(t, c, "s", 1000, Options{})
	_, err = New(ctx, c, "s", 1000, 0.01, quiet(Options{PublicHash: true}))
	require.ErrorIs(t, err, ErrMismatch)
	require.ErrorContains(t, err, "PublicHash differs")
	_, err = NewCuckoo(ctx, c, "s", 1000, 0.01, quiet(Options{}))
	require.ErrorIs(t, err, ErrMismatch)
	require.ErrorContains(t, err, "kind of set differs")
}

// The lines of a local set do not fit the generation that a load makes in another shape.
func TestImportsMeetAChangeOfShape(t *testing.T) {
	t.Parallel()
	srv, err := inprocess.Start()
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	ctx := t.Context()
	old := wholeSet(t, openClient(t, srv.Addr()), "s", 1000, Options{})
	other := openSet(t, openClient(t, srv.Addr()), "s", 50_000, Options{})
	local, err := old.Local()
	require.NoError(t, err)
	require.NoError(t, other.Load(ctx, func(ctx context.Context, _ time.Time, add func(...[]byte) error) error {
		require.NoError(t, old.client.Watch.Poll(ctx))
		require.ErrorIs(t, old.Import(ctx, local), errResizes.Cause)
		return add(key(1))
	}))
	require.NoError(t, old.client.Watch.Poll(ctx))
	require.Error(t, old.Import(ctx, local))
	local, err = old.Local()
	require.NoError(t, err)
	local.AddHash(old.Hash(key(2)))
	require.NoError(t, old.Import(ctx, local))
	holds(t, other, key(1), key(2))
}
