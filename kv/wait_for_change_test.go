package kv

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
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A view of a directory is woken by each write, by one that is not synced too, and not without one.
func TestWaitForChangeInADirectory(t *testing.T) {
	t.Cleanup(leakCheck())
	dir := t.TempDir()
	w := openWriter(t, dir, tinyOptions())
	view := openView(t, dir, &Options{PollInterval: time.Microsecond})
	woken := make(chan error)
	for i := range 50 {
		go func() { woken <- view.WaitForChange(t.Context()) }()
		require.NoError(t, w.Set([]byte("a"), fmt.Append(nil, i), NoSync))
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
	w := openWriter(t, dir, nil)
	view := openView(t, dir, &Options{PollInterval: 1 << 40})
	require.NoError(t, w.Set([]byte("a"), nil, NoSync))
	require.NoError(t, view.WaitForChange(t.Context()))
	requireContents(t, storetest.Model{"a": ""}, view)
	ctx, end := context.WithCancel(t.Context())
	waiting := make(chan error)
	go func() { waiting <- view.WaitForChange(ctx) }()
	end()
	require.ErrorIs(t, <-waiting, context.Canceled)
}

func TestWaitForChangeByDefault(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want time.Duration
	}{
		{Options{}, 10 * time.Millisecond},
		{Options{PollInterval: time.Minute}, time.Minute},
		{Options{Objects: &objects.Config{Store: objstore.NewMem()}}, time.Second},
		{Options{Objects: &objects.Config{Store: objstore.NewMem()}, PollInterval: time.Minute}, time.Minute},
	} {
		o, err := c.o.withDefaults()
		require.NoError(t, err)
		require.Equal(t, c.want, o.PollInterval)
	}
}

// A wait ends when the view is closed, and not an interval later: whoever closes it may wait for those who wait.
func TestWaitForChangeEndsWithTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewMem()
		w, err := Open("db", &Options{harness: harness.Harness{FS: fsys}})
		require.NoError(t, err)
		view, err := OpenReadOnly("db", &Options{harness: harness.Harness{FS: fsys}, PollInterval: time.Hour})
		require.NoError(t, err)
		began := time.Now()
		waiting := make(chan error)
		for range 3 {
			go func() { waiting <- view.WaitForChange(t.Context()) }()
		}
		synctest.Wait()
		require.NoError(t, view.Close())
		for range 3 {
			require.ErrorIs(t, <-waiting, ErrClosed)
		}
		require.Zero(t, time.Since(began), "of a clock that stands still while somebody can go on")
		require.ErrorIs(t, view.WaitForChange(t.Context()), ErrClosed)
		require.NoError(t, w.Close())
		require.ErrorIs(t, w.WaitForChange(t.Context()), ErrClosed)
	})
}

func BenchmarkWaitForChangeLook(b *testing.B) {
	dir := b.TempDir()
	w := openWriter(b, dir, nil)
	require.NoError(b, w.Set([]byte("a"), nil, NoSync))
	view := openView(b, dir, nil)
	for b.Loop() {
		require.NoError(b, view.Refresh(b.Context()))
	}
}
