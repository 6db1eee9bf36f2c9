//go:build unix && !illumos && !solaris && !aix

package vfs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// openIn opens a directory of the operating system for the length of a test.
func openIn(t *testing.T, fsys vfs.FS, dir string) (vfs.FS, *vfs.Directory) {
	t.Helper()
	fsys, d, err := vfs.OpenDirectory(fsys, dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.ErrorIs(t, d.Close(), fs.ErrClosed) })
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return fsys, d
}

// Files are those of the directory that was opened, wherever that is, and its name's for all others.
func TestAnOpenDirectoryIsFollowed(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, away, outside := filepath.Join(top, "a"), filepath.Join(top, "b"), filepath.Join(top, "outside")
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.Mkdir(dir, 0o700))
	fsys, d := openIn(t, vfs.OS, dir)
	write(t, fsys, in("old"), "1")
	require.NoError(t, d.Check())
	require.NoError(t, os.Rename(dir, away))
	require.ErrorIs(t, d.Check(), vfs.ErrMoved)
	require.ErrorIs(t, d.Check(), fs.ErrNotExist)
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, name := range []string{"old", "new", "lock", "f.tmp"} {
		write(t, vfs.OS, in(name), "another's")
	}
	require.ErrorIs(t, d.Check(), vfs.ErrMoved)
	require.NotErrorIs(t, d.Check(), fs.ErrNotExist)

	require.Equal(t, "1", read(t, fsys, in("old")))
	write(t, fsys, in("new"), "2")
	write(t, fsys, in("f.tmp"), "3")
	require.NoError(t, fsys.Rename(in("f.tmp"), in("f")))
	require.NoError(t, fsys.Link(in("f"), in("g")))
	require.NoError(t, fsys.Link(in("f"), outside))
	require.Equal(t, "3", read(t, vfs.OS, outside))
	require.NoError(t, fsys.Rename(outside, in("h")))
	require.NoError(t, fsys.MkdirAll(in(filepath.Join("x", "y"))))
	write(t, fsys, in(filepath.Join("x", "y", "z")), "4")
	require.NoError(t, fsys.SyncDir(in("x")))
	require.NoError(t, fsys.SyncDir(dir))
	lock, err := fsys.Lock(in("lock"), vfs.Exclusive)
	require.NoError(t, err)
	_, err = vfs.OS.Lock(filepath.Join(away, "lock"), vfs.Exclusive)
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.NoError(t, lock.Close())
	size, err := fsys.Stat(in("new"))
	require.NoError(t, err)
	require.EqualValues(t, 1, size)
	require.NoError(t, fsys.(vfs.FileSyncer).SyncFile(in("new")))
	require.NoError(t, fsys.Remove(in("old")))
	require.ErrorIs(t, fsys.Remove(in("old")), fs.ErrNotExist)
	require.ErrorContains(t, fsys.Remove(in("old")), in("old"))
	require.ErrorIs(t, fsys.Remove(dir), vfs.ErrMoved)
	again, e := openIn(t, fsys, dir)
	require.ErrorIs(t, e.Check(), vfs.ErrMoved)
	require.Equal(t, "2", read(t, again, in("new")), "it is opened by the directory that is open, and not by name")

	names, err := fsys.List(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"f", "g", "h", "lock", "new", "x"}, names)
	names, err = vfs.OS.List(away)
	require.NoError(t, err)
	require.Equal(t, []string{"f", "g", "h", "lock", "new", "x"}, names)
	for _, name := range []string{"old", "new", "lock", "f.tmp"} {
		require.Equal(t, "another's", read(t, vfs.OS, in(name)))
	}

	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Rename(away, dir))
	require.NoError(t, d.Check())
}

// Two directories are open at once, one of them by a link and one in the other.
func TestTwoDirectoriesAreOpen(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, name := filepath.Join(top, "dir"), filepath.Join(top, "link")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Symlink("dir", name))
	fsys, d := openIn(t, vfs.OS, name)
	below := filepath.Join(name, "below")
	require.NoError(t, fsys.MkdirAll(below))
	fsys, e := openIn(t, fsys, below)
	require.NoError(t, os.Rename(filepath.Join(dir, "below"), filepath.Join(dir, "moved")))
	require.NoError(t, d.Check())
	require.ErrorIs(t, e.Check(), vfs.ErrMoved)
	write(t, fsys, filepath.Join(name, "f"), "1")
	require.NoError(t, fsys.Link(filepath.Join(name, "f"), filepath.Join(below, "g")))
	require.Equal(t, "1", read(t, vfs.OS, filepath.Join(dir, "moved", "g")))

	// A link that leads elsewhere now is a name that does.
	require.NoError(t, os.Remove(name))
	require.NoError(t, os.Symlink(top, name))
	require.ErrorIs(t, d.Check(), vfs.ErrMoved)

	// A file in a directory may be a link to one that is elsewhere.
	write(t, vfs.OS, filepath.Join(top, "away"), "2")
	require.NoError(t, os.Symlink(filepath.Join(top, "away"), filepath.Join(dir, "linked")))
	require.Equal(t, "2", read(t, fsys, filepath.Join(name, "linked")))
	require.NoError(t, fsys.Link(filepath.Join(name, "linked"), filepath.Join(below, "h")))
	require.NoError(t, os.Remove(filepath.Join(top, "away")))
	require.Equal(t, "2", read(t, fsys, filepath.Join(below, "h")))
}

// A file under a bound is opened again in its directory, after that was closed too, until the file is.
func TestAFileKeepsItsDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fsys, d, err := vfs.OpenDirectory(vfs.OS, dir)
	require.NoError(t, err)
	limit := vfs.NewReadLimit(1)
	var files []vfs.ReadFile
	for _, name := range []string{"a", "b"} {
		write(t, fsys, filepath.Join(dir, name), name)
		f, err := limit.Open(fsys, filepath.Join(dir, name))
		require.NoError(t, err)
		files = append(files, f)
	}
	require.NoError(t, d.Close())
	require.ErrorIs(t, d.Close(), fs.ErrClosed)
	for i, want := range []string{"a", "b"} {
		p := make([]byte, 1)
		_, err := files[i].ReadAt(p, 0)
		require.NoError(t, err)
		require.Equal(t, want, string(p))
	}
	for _, f := range files {
		require.NoError(t, f.Close())
	}
	require.ErrorIs(t, d.Check(), fs.ErrClosed, "no file needs it any more")
}

// What is no directory is not opened, and a pipe does not block.
func TestOnlyDirectoriesAreOpened(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "f")
	_, _, err := vfs.OpenDirectory(vfs.OS, name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	write(t, vfs.OS, name, "")
	_, _, err = vfs.OpenDirectory(vfs.OS, name)
	require.ErrorContains(t, err, "not a directory")
	fsys, d, err := vfs.OpenDirectory(vfs.NewMem(), name)
	require.NoError(t, err)
	require.Nil(t, d)
	require.NotNil(t, fsys)
	require.NoError(t, d.Check())
	require.NoError(t, d.Close())

	fsys, d, err = vfs.OpenDirectory(vfs.OS, filepath.Dir(name))
	require.NoError(t, err)
	require.NoError(t, d.Close())
	_, err = fsys.Open(name)
	require.ErrorIs(t, err, fs.ErrClosed)
}

// A directory is opened by its full name, where it is one of the operating system.
func TestAbsolute(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	require.NoError(t, err)
	for dir, want := range map[string]string{"": "", ".": here, "a/../b/": filepath.Join(here, "b"), "/x/": "/x"} {
		full, err := vfs.Absolute(vfs.OS, dir)
		require.NoError(t, err)
		require.Equal(t, want, full)
		for _, mem := range []vfs.FS{vfs.NewMem(), vfs.NewReadLimit(1).Relieve(vfs.NewMem())} {
			full, err = vfs.Absolute(mem, dir)
			require.NoError(t, err)
			require.Equal(t, dir, full)
		}
	}
}
