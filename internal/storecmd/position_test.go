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
	_, err := sourceOf(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, manifest.SetCurrent(vfs.OS, dir, 7))
	_, err = sourceOf(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
