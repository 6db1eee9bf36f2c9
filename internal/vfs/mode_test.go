//go:build unix

package vfs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
)

// requireMode checks the permissions of a file, under a umask that leaves those of the owner and the group.
func requireMode(t *testing.T, want fs.FileMode, name string) {
	t.Helper()
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, want, info.Mode().Perm()&0o750, name)
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		fs        vfs.FS
		file, dir fs.FileMode
	}{
		{vfs.OS, 0o600, 0o700}, {vfs.OSWithMode(0o640), 0o640, 0o750}, {vfs.OSWithMode(0o600), 0o600, 0o700},
	} {
		top := filepath.Join(t.TempDir(), "a")
		dir := filepath.Join(top, "b")
		require.NoError(t, c.fs.MkdirAll(dir))
		requireMode(t, c.dir, top)
		requireMode(t, c.dir, dir)
		name := filepath.Join(dir, "file")
		f, err := c.fs.Create(name)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		requireMode(t, c.file, name)
		lock, err := c.fs.Lock(filepath.Join(dir, "lock"), vfs.Exclusive)
		require.NoError(t, err)
		require.NoError(t, lock.Close())
		requireMode(t, c.file, filepath.Join(dir, "lock"))

		f, err = vfs.OSWithMode(0o660).Create(name)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		requireMode(t, c.file, name)
	}
}

// A lock that a reader makes is for all who read the directory.
func TestALockOfAReaderHasTheDirectorysMode(t *testing.T) {
	for dirMode, want := range map[fs.FileMode]fs.FileMode{0o700: 0o600, 0o750: 0o640} {
		dir := filepath.Join(t.TempDir(), "dir")
		require.NoError(t, os.Mkdir(dir, dirMode))
		lock, err := vfs.OS.Lock(filepath.Join(dir, "lock"), vfs.Shared)
		require.NoError(t, err)
		require.NoError(t, lock.Close())
		requireMode(t, want, filepath.Join(dir, "lock"))
	}
}
