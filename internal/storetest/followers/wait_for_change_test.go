package followers

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// A view of a directory is woken by each write, by one that is not synced too, and not without one.
func TestWaitForChangeInADirectory(t *testing.T) {
	t.Cleanup(storetest.LeakCheck())
	dir := t.TempDir()
	w := stores.OpenWriter(t, dir, stores.TinyOptions())
	view := stores.OpenView(t, dir, &kv.Options{PollInterval: time.Microsecond})
	woken := make(chan error)
	for i := range 50 {
		go func() { woken <- view.WaitForChange(t.Context()) }()
		require.NoError(t, w.Set([]byte("a"), fmt.Append(nil, i), kv.NoSync))
		require.NoError(t, <-woken)
		got, err := view.Get([]byte("a"))
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(i), string(got))
	}
	require.NoError(t, w.Flush(t.Context()), "that is no write")
	require.NoError(t, w.Compact(t.Context(), nil, nil))
	ctx, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer end()
	require.ErrorIs(t, view.WaitForChange(ctx), context.DeadlineExceeded)
}

// What has come before the call is seen at once, however long the interval is, and a wait ends with its context.
func TestWaitForChangeLooksFirst(t *testing.T) {
	dir := t.TempDir()
	w := stores.OpenWriter(t, dir, nil)
	view := stores.OpenView(t, dir, &kv.Options{PollInterval: 1 << 40})
	require.NoError(t, w.Set([]byte("a"), nil, kv.NoSync))
	require.NoError(t, view.WaitForChange(t.Context()))
	storetest.RequireContents(t, storetest.Model{"a": ""}, view)
	ctx, end := context.WithCancel(t.Context())
	waiting := make(chan error)
	go func() { waiting <- view.WaitForChange(ctx) }()
	end()
	require.ErrorIs(t, <-waiting, context.Canceled)
}

// A wait ends when the view is closed, and not an interval later: the one that closes it may wait for those that wait.
func TestWaitForChangeEndsWithTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewMem()
		w, err := kv.Open("db", stores.With(harness.Harness{FS: fsys}, &kv.Options{}))
		require.NoError(t, err)
		view, err := kv.OpenReadOnly("db", stores.With(harness.Harness{FS: fsys}, &kv.Options{PollInterval: time.Hour}))
		require.NoError(t, err)
		began := time.Now()
		waiting := make(chan error)
		for range 3 {
			go func() { waiting <- view.WaitForChange(t.Context()) }()
		}
		synctest.Wait()
		require.NoError(t, view.Close())
		for range 3 {
			require.ErrorIs(t, <-waiting, kv.ErrClosed)
		}
		require.Zero(t, time.Since(began), "of a clock that stands still while a goroutine can go on")
		require.ErrorIs(t, view.WaitForChange(t.Context()), kv.ErrClosed)
		require.NoError(t, w.Close())
		require.ErrorIs(t, w.WaitForChange(t.Context()), kv.ErrClosed)
	})
}

func BenchmarkWaitForChangeLook(b *testing.B) {
	dir := b.TempDir()
	w := stores.OpenWriter(b, dir, nil)
	require.NoError(b, w.Set([]byte("a"), nil, kv.NoSync))
	view := stores.OpenView(b, dir, nil)
	for b.Loop() {
		require.NoError(b, view.Refresh(b.Context()))
	}
}
