package version

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
)

type unlistableFS struct{ vfs.FS }

func (unlistableFS) List(string) ([]string, error) { return nil, errors.New("no") }

// While nobody knows which readers there are, obsolete files are held, and counted.
func TestFilesAreHeldWhileReadersAreNotKnown(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("db"))
	c := &Cleaner{FS: unlistableFS{mem}, Dir: "db", Log: slog.New(slog.DiscardHandler),
		Position: func() manifest.Position { return manifest.Position{Manifest: 1} }}
	files := []unneededFile{{"db/a", 1}, {"db/b", 2}}
	require.Empty(t, c.removable(files))
	require.Equal(t, 2, c.Held())
	c.FS = mem
	require.Equal(t, files, c.removable(nil))
	require.Zero(t, c.Held())
}

// A caller that waits for files to be removed waits no longer than its context lasts.
func TestWaitForTheCleanerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &Cleaner{busy: true}
		c.wake.L = &c.mu
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.WaitContext(ctx) }()
		synctest.Wait()
		require.Empty(t, ended)
		cancel()
		require.ErrorIs(t, <-ended, base.ErrContextEnded)
	})
}
