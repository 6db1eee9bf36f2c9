package kv

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/siftkv/siftkv/objstore"
	"github.com/stretchr/testify/require"
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
	require.NoError(t, w.Flush(), "that is no write")
	require.NoError(t, w.Compact(nil, nil))
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
	requireContents(t, model{"a": ""}, view)
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
		{Options{Objects: &Objects{Store: objstore.NewMem()}}, time.Second},
		{Options{Objects: &Objects{Store: objstore.NewMem()}, PollInterval: time.Minute}, time.Minute},
	} {
		o, err := c.o.withDefaults()
		require.NoError(t, err)
		require.Equal(t, c.want, o.PollInterval)
	}
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
