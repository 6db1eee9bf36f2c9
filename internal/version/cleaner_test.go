package version

import (
	"errors"
	"log/slog"
	"testing"

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
	require.Empty(t, c.removable([]string{"db/a", "db/b"}))
	require.Equal(t, 2, c.Held())
	c.FS = mem
	require.Equal(t, []string{"db/a", "db/b"}, c.removable(nil))
	require.Zero(t, c.Held())
}
