package storecmd

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A manifest that stays away is an error, and no store without a past.
func TestASourceWithoutItsManifest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := &following{followCommand: &followCommand{From: Location(dir)}}
	_, err := f.sourceOf(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, manifest.SetCurrent(vfs.OS, dir, 7))
	_, err = f.sourceOf(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
}
