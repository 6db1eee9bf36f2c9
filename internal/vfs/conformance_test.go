package vfs_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// onBoth runs a test on both implementations, in a directory of its own, and in one that is open.
func onBoth(t *testing.T, test func(t *testing.T, fsys vfs.FS, dir string)) {
	t.Run("os", func(t *testing.T) { test(t, vfs.OS, t.TempDir()) })
	t.Run("open", func(t *testing.T) {
		dir := t.TempDir()
		fsys, opened, err := vfs.OpenDirectory(vfs.OS, dir)
		require.NoError(t, err)
		defer func() { require.NoError(t, opened.Close()) }()
		test(t, fsys, dir)
	})
	t.Run("mem", func(t *testing.T) {
		fsys := vfs.NewMem()
		dir := filepath.Join("some", "dir")
		require.NoError(t, fsys.MkdirAll(dir))
		test(t, fsys, dir)
	})
}

func write(t *testing.T, fsys vfs.FS, name, content string) {
	t.Helper()
	w, err := fsys.Create(name)
	require.NoError(t, err)
	n, err := w.Write([]byte(content))
	require.NoError(t, err)
	require.Equal(t, len(content), n)
	require.NoError(t, w.Sync())
	require.NoError(t, w.Close())
}

func read(t *testing.T, fsys vfs.FS, name string) string {
	t.Helper()
	r, err := fsys.Open(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	return readAll(t, r)
}

func readAll(t *testing.T, r vfs.ReadFile) string {
	t.Helper()
	size, err := r.Size()
	require.NoError(t, err)
	b, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	require.NoError(t, err)
	return string(b)
}

func TestWrittenBytesAreRead(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "f")
		w, err := fsys.Create(name)
		require.NoError(t, err)
		var want bytes.Buffer
		for i := range 300 {
			part := fmt.Appendf(nil, "%d,", i*i*i)
			n, err := io.MultiWriter(w, &want).Write(part)
			require.NoError(t, err)
			require.Equal(t, len(part), n)
		}
		require.Equal(t, want.String(), read(t, fsys, name), "before Sync and Close")
		require.NoError(t, w.Sync())
		require.NoError(t, w.Close())
		require.Equal(t, want.String(), read(t, fsys, name))
		size, err := fsys.Stat(name)
		require.NoError(t, err)
		require.EqualValues(t, want.Len(), size)
	})
}

func TestReadAt(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "f")
		write(t, fsys, name, "0123456789")
		r, err := fsys.Open(name)
		require.NoError(t, err)
		for _, c := range []struct {
			off, length int
			want        string
			err         error
		}{
			{0, 10, "0123456789", nil},
			{3, 4, "3456", nil},
			{8, 4, "89", io.EOF},
			{10, 1, "", io.EOF},
			{99, 1, "", io.EOF},
			{4, 0, "", nil},
		} {
			buf := make([]byte, c.length)
			n, err := r.ReadAt(buf, int64(c.off))
			require.Equal(t, c.want, string(buf[:n]), "%d bytes at %d", c.length, c.off)
			require.Equal(t, c.err, err, "%d bytes at %d", c.length, c.off)
		}
		_, err = r.ReadAt(make([]byte, 1), -1)
		require.Error(t, err)
		require.NoError(t, r.Close())
	})
}

func TestCreateTruncates(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "f")
		write(t, fsys, name, "long content")
		write(t, fsys, name, "short")
		require.Equal(t, "short", read(t, fsys, name))
	})
}

func TestMissingNames(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		gone, there := filepath.Join(dir, "gone"), filepath.Join(dir, "there")
		write(t, fsys, there, "x")
		calls := map[string]func() error{
			"Open":      func() error { _, err := fsys.Open(gone); return err },
			"Stat":      func() error { _, err := fsys.Stat(gone); return err },
			"Remove":    func() error { return fsys.Remove(gone) },
			"Rename":    func() error { return fsys.Rename(gone, there) },
			"Link":      func() error { return fsys.Link(gone, there+"2") },
			"List":      func() error { _, err := fsys.List(gone); return err },
			"SyncDir":   func() error { return fsys.SyncDir(gone) },
			"Create":    func() error { _, err := fsys.Create(filepath.Join(gone, "f")); return err },
			"Rename to": func() error { return fsys.Rename(there, filepath.Join(gone, "f")) },
			"Link to":   func() error { return fsys.Link(there, filepath.Join(gone, "f")) },
			"Lock":      func() error { _, err := fsys.Lock(filepath.Join(gone, "f"), vfs.Exclusive); return err },
			"RLock":     func() error { _, err := fsys.Lock(filepath.Join(gone, "f"), vfs.Shared); return err },
		}
		for name, call := range calls {
			err := call()
			require.ErrorIs(t, err, fs.ErrNotExist, name)
			require.ErrorContains(t, err, gone, name)
		}
		require.Equal(t, "x", read(t, fsys, there))
	})
}

func TestListIsSorted(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		names, err := fsys.List(dir)
		require.NoError(t, err)
		require.Empty(t, names)
		for _, name := range []string{"b", "a", "c"} {
			write(t, fsys, filepath.Join(dir, name), name)
		}
		require.NoError(t, fsys.MkdirAll(filepath.Join(dir, "aa", "deeper")))
		names, err = fsys.List(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "aa", "b", "c"}, names)
		require.NoError(t, fsys.SyncDir(dir))
	})
}

func TestMkdirAll(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		deep := filepath.Join(dir, "x", "y", "z")
		require.NoError(t, fsys.MkdirAll(deep))
		require.NoError(t, fsys.MkdirAll(deep), "a second time")
		write(t, fsys, filepath.Join(deep, "f"), "x")
		_, err := fsys.Stat(filepath.Join(dir, "x"))
		require.NoError(t, err)
		require.Error(t, fsys.MkdirAll(filepath.Join(deep, "f")), "where a file is")
		require.Error(t, fsys.MkdirAll(filepath.Join(deep, "f", "g")), "below a file")
		_, err = fsys.Create(deep)
		require.Error(t, err, "a file where a directory is")
		_, err = fsys.List(filepath.Join(deep, "f"))
		require.Error(t, err, "a file's entries")
	})
}

func TestRemove(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		sub := filepath.Join(dir, "sub")
		name := filepath.Join(sub, "f")
		require.NoError(t, fsys.MkdirAll(sub))
		write(t, fsys, name, "x")
		require.Error(t, fsys.Remove(sub), "a directory that is not empty")
		require.NoError(t, fsys.Remove(name))
		require.ErrorIs(t, fsys.Remove(name), fs.ErrNotExist)
		require.NoError(t, fsys.Remove(sub))
		names, err := fsys.List(dir)
		require.NoError(t, err)
		require.Empty(t, names)
	})
}

func TestRename(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		write(t, fsys, a, "new")
		write(t, fsys, b, "old")
		r, err := fsys.Open(b)
		require.NoError(t, err)
		require.NoError(t, fsys.Rename(a, b))
		require.Equal(t, "new", read(t, fsys, b))
		require.Equal(t, "old", readAll(t, r), "by those who had it open")
		require.NoError(t, r.Close())
		_, err = fsys.Stat(a)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NoError(t, fsys.Rename(b, b))
		require.Equal(t, "new", read(t, fsys, b))
	})
}

func TestRenameDirectory(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
		require.NoError(t, fsys.MkdirAll(filepath.Join(from, "sub")))
		write(t, fsys, filepath.Join(from, "f"), "1")
		write(t, fsys, filepath.Join(from, "sub", "g"), "2")
		write(t, fsys, from+"x", "a neighbour whose name begins alike")
		require.Error(t, fsys.Rename(from, filepath.Join(from, "sub", "in itself")))
		require.NoError(t, fsys.Rename(from, to))
		require.Equal(t, "1", read(t, fsys, filepath.Join(to, "f")))
		require.Equal(t, "2", read(t, fsys, filepath.Join(to, "sub", "g")))
		names, err := fsys.List(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"fromx", "to"}, names)
		require.Error(t, fsys.Rename(from+"x", to), "onto a directory")
		require.Error(t, fsys.Rename(to, from+"x"), "onto a file")
	})
}

func TestLinkSharesContent(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		w, err := fsys.Create(a)
		require.NoError(t, err)
		require.NoError(t, fsys.Link(a, b))
		_, err = w.Write([]byte("written later"))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.Equal(t, "written later", read(t, fsys, b))
		require.ErrorIs(t, fsys.Link(a, b), fs.ErrExist)
		require.Error(t, fsys.Link(dir, b+"2"), "a directory")
		require.NoError(t, fsys.Remove(a))
		require.Equal(t, "written later", read(t, fsys, b))
	})
}

func TestRemovedFileStaysReadable(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "f")
		write(t, fsys, name, "old")
		r, err := fsys.Open(name)
		require.NoError(t, err)
		require.NoError(t, fsys.Remove(name))
		write(t, fsys, name, "new")
		require.Equal(t, "old", readAll(t, r))
		require.Equal(t, "new", read(t, fsys, name))
		require.NoError(t, r.Close())
	})
}

func TestClosedFiles(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "f")
		w, err := fsys.Create(name)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		_, err = w.Write([]byte("x"))
		require.ErrorIs(t, err, fs.ErrClosed)
		require.ErrorIs(t, w.Sync(), fs.ErrClosed)
		require.ErrorIs(t, w.Close(), fs.ErrClosed)

		r, err := fsys.Open(name)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		_, err = r.ReadAt(make([]byte, 1), 0)
		require.ErrorIs(t, err, fs.ErrClosed)
		_, err = r.Size()
		require.ErrorIs(t, err, fs.ErrClosed)
		require.ErrorIs(t, r.Close(), fs.ErrClosed)
	})
}

func TestNamesAreCleaned(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		sep := string(filepath.Separator)
		require.NoError(t, fsys.MkdirAll(dir+sep+"d"+sep))
		write(t, fsys, dir+sep+"d"+sep+".."+sep+"d"+sep+sep+"f", "x")
		require.Equal(t, "x", read(t, fsys, filepath.Join(dir, "d", "f")))
		names, err := fsys.List(dir + sep + "." + sep + "d")
		require.NoError(t, err)
		require.Equal(t, []string{"f"}, names)
	})
}

func TestAFileOfOthersIsSynced(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		syncer, ok := fsys.(vfs.FileSyncer)
		require.True(t, ok)
		name := filepath.Join(dir, "f")
		require.ErrorIs(t, syncer.SyncFile(name), fs.ErrNotExist)
		write(t, fsys, name, "content")
		require.NoError(t, syncer.SyncFile(name))
		require.Equal(t, "content", read(t, fsys, name))
		require.Error(t, syncer.SyncFile(dir))
	})
}
