package changelog

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Marker stops when no slot is left, and starts again with the next.
func TestAMarkerStartsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(t, vfs.NewMem())
		w.slots.Trim = func() error { w.edit(&manifest.Edit{}); return nil }
		var marks atomic.Int64
		m := Marker{Log: w.slots, Wait: func(ctx context.Context) { <-ctx.Done() },
			Mark: func(context.Context) (time.Duration, bool, error) { marks.Add(1); return 0, false, nil }}
		defer m.Stop()
		m.Start(0)
		require.NoError(t, w.slots.Drop("a"))
		time.Sleep(3 * LookEvery)
		require.Zero(t, marks.Load())
		w.slots.begin(t, "a", 0)
		require.NoError(t, w.slots.Release())
		m.Start(LookEvery)
		c := w.consumer()
		time.Sleep(2 * LookEvery)
		require.Positive(t, marks.Load())
		require.NoError(t, c.Close())
	})
}

// What the file of a slot said says nothing of another slot that has its name by the time it is taken over.
func TestTheFileOfASlotBeforeIsNotTakenOver(t *testing.T) {
	t.Parallel()
	disk := &hookFS{FS: vfs.NewMem()}
	w := newWriter(t, disk)
	disk.opened = func(name string) error {
		if filepath.Base(name) != "SLOT-a" {
			return nil
		}
		disk.opened = nil
		require.NoError(t, w.slots.Drop("a"))
		w.slots.begin(t, "a", 0)
		require.NoError(t, w.slots.Release())
		return nil
	}
	w.slots.Learn()
	require.Nil(t, disk.opened)
	require.Empty(t, w.slots.States(0)[0].Lost)
}

// Slots whose files cannot all be read are not told of in part.
func TestStatesElsewhereAreWhole(t *testing.T) {
	t.Parallel()
	disk := &hookFS{FS: vfs.NewMem()}
	w := newWriter(t, disk)
	w.slots.begin(t, "b", 0)
	states, err := w.slots.StatesElsewhere(disk, 0)
	require.NoError(t, err)
	require.Len(t, states, 2)
	disk.opened = func(name string) error {
		if filepath.Base(name) == "SLOT-b" {
			return syscall.EIO
		}
		return nil
	}
	states, err = w.slots.StatesElsewhere(disk, 0)
	require.ErrorIs(t, err, syscall.EIO)
	require.Empty(t, states)
}

// A hookFS calls a function after it has opened a file.
type hookFS struct {
	vfs.FS
	opened func(name string) error
}

func (h *hookFS) Open(name string) (vfs.ReadFile, error) {
	f, err := h.FS.Open(name)
	if opened := h.opened; opened != nil && err == nil {
		err = opened(name)
	}
	return f, err
}
