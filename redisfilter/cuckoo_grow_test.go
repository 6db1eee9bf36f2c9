package redisfilter

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A table is the rows that a set is loaded from.
type table struct {
	mu   sync.Mutex
	rows [][]byte
}

func (b *table) insert(key []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows = append(b.rows, key)
}

func (b *table) source(_ context.Context, _ time.Time, add func(...[]byte) error) error {
	b.mu.Lock()
	rows := slices.Clone(b.rows)
	b.mu.Unlock()
	return add(rows...)
}

// A set that is full gets more room by itself, while processes ask, add and remove.
func TestACuckooSetGrows(t *testing.T) {
	t.Parallel()
	const keys = 1200
	ctx, addr := t.Context(), startServer(t).Addr
	rows := &table{}
	open := func() *Cuckoo {
		k, err := NewCuckoo(ctx, openClient(t, addr), "banned", 500, 0.001, quiet(Options{Source: rows.source}))
		require.NoError(t, err)
		t.Cleanup(func() { _ = k.Close() })
		require.NoError(t, k.Ready(ctx))
		return k
	}
	adds, other := open(), open()
	for i := range keys {
		until(t, func() bool {
			err := adds.Add(ctx, key(i))
			require.True(t, err == nil || errors.Is(err, ErrFull), "%v", err)
			return err == nil
		}, "room for a key")
		rows.insert(key(i))
		maybe, err := other.Contains(ctx, key(i))
		require.True(t, maybe)
		require.NoError(t, err)
		removed, err := other.Remove(ctx, key(i))
		require.NoError(t, err)
		require.True(t, removed)
		require.NoError(t, other.Add(ctx, key(i)))
	}
	for _, k := range []*Cuckoo{adds, other} {
		maybe, err := k.MContains(ctx, keysTo(keys))
		require.NoError(t, err)
		require.NotContains(t, maybe, false)
	}
	until(t, func() bool {
		info, err := other.Info(ctx)
		require.NoError(t, err)
		return info.Capacity >= keys
	}, "the capacity is what is needed")
}

// A load sizes the set by what it finds, and processes that ask for another number share it.
func TestACuckooSetIsLoadedWithMoreKeys(t *testing.T) {
	t.Parallel()
	ctx, addr := t.Context(), startServer(t).Addr
	small, err := NewCuckoo(ctx, openClient(t, addr), "banned", 100, 0.001, quiet(Options{}))
	require.NoError(t, err)
	defer func() { require.NoError(t, small.Close()) }()
	require.NoError(t, small.Load(ctx, sourceOf(keysTo(2000)...)))
	info, err := small.Info(ctx)
	require.NoError(t, err)
	require.InDelta(t, 2500, info.Capacity, 2)

	large, err := NewCuckoo(ctx, openClient(t, addr), "banned", 9000, 0.001, quiet(Options{}))
	require.NoError(t, err)
	defer func() { require.NoError(t, large.Close()) }()
	require.NoError(t, small.Load(ctx, sourceOf(keysTo(2000)...)))
	for _, k := range []*Cuckoo{small, large} {
		require.NoError(t, k.client.Watch.Poll(ctx))
		info, err = k.Info(ctx)
		require.NoError(t, err)
		require.Equal(t, 9000, info.Capacity)
		maybe, err := k.MContains(ctx, keysTo(2000))
		require.NoError(t, err)
		require.NotContains(t, maybe, false)
	}
}
