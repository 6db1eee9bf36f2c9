package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

func TestRegistrations(t *testing.T) {
	for _, fsys := range []vfs.FS{vfs.OS, vfs.NewMem()} {
		dir := filepath.Join(t.TempDir(), "store")
		require.NoError(t, fsys.MkdirAll(dir))
		n, _, err := Readers(fsys, dir)
		require.NoError(t, err)
		require.Zero(t, n)

		a, err := Register(fsys, dir)
		require.NoError(t, err)
		b, err := Register(fsys, dir)
		require.NoError(t, err)
		require.NoError(t, a.Set(Position{7, 300}))
		n, oldest, err := Readers(fsys, dir)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Equal(t, Position{}, oldest, "b may need everything")
		require.NoError(t, b.Set(Position{8, 20}))
		_, oldest, err = Readers(fsys, dir)
		require.NoError(t, err)
		require.Equal(t, Position{7, 300}, oldest)
		require.NoError(t, a.Set(Position{8, 100}))
		_, oldest, err = Readers(fsys, dir)
		require.NoError(t, err)
		require.Equal(t, Position{8, 20}, oldest)

		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		names, err := fsys.List(dir)
		require.NoError(t, err)
		require.Empty(t, names)
	}
}

func TestReadersOfAnyTextAreMinded(t *testing.T) {
	dir := t.TempDir()
	r, err := Register(vfs.OS, dir)
	require.NoError(t, err)
	require.NoError(t, r.Set(Position{3, 4}))
	line, err := os.ReadFile(r.name)
	require.NoError(t, err)
	for n := range line {
		require.NoError(t, os.WriteFile(r.name, line[:n], 0o600))
		readers, oldest, err := Readers(vfs.OS, dir)
		require.NoError(t, err)
		require.Equal(t, 1, readers)
		require.Equal(t, Position{}, oldest, "cut to %d bytes", n)
	}
	require.NoError(t, os.WriteFile(r.name, line, 0o600))
	_, oldest, err := Readers(vfs.OS, dir)
	require.NoError(t, err)
	require.Equal(t, Position{3, 4}, oldest)
	require.NoError(t, r.Close())
}

// A leavingFS is a directory whose readers leave as soon as they are listed, and in which nothing can be removed.
type leavingFS struct{ vfs.FS }

func (f leavingFS) List(dir string) ([]string, error) {
	names, err := f.FS.List(dir)
	for _, name := range names {
		err = errors.Join(err, f.FS.Remove(filepath.Join(dir, name)))
	}
	return names, err
}

func (leavingFS) Remove(string) error { return fs.ErrPermission }

func TestReadersThatLeaveMeanwhileAreNotMadeAgain(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, readerPrefix+"1-1"), nil, 0o600))
	n, _, err := Readers(leavingFS{vfs.OS}, dir)
	require.NoError(t, err)
	require.Zero(t, n)
	names, err := vfs.OS.List(dir)
	require.NoError(t, err)
	require.Empty(t, names)
}

// A race between registering and removing what the dead left: whoever is registered
// is seen from then on.
func TestRegisterWhileTheDeadAreRemoved(t *testing.T) {
	dir := t.TempDir()
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if _, _, err := Readers(vfs.OS, dir); err != nil {
				stopped <- err
				return
			}
		}
	}()
	for range 300 {
		r, err := Register(vfs.OS, dir)
		require.NoError(t, err)
		require.FileExists(t, r.name)
		require.NoError(t, r.Set(Position{1, 2}))
		n, oldest, err := Readers(vfs.OS, dir)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, Position{1, 2}, oldest)
		require.NoError(t, r.Close())
	}
	close(stop)
	require.NoError(t, <-stopped)
}

func TestATailReadsWhatAManifestGrowsBy(t *testing.T) {
	fsys := vfs.NewMem()
	require.NoError(t, fsys.MkdirAll("db"))
	l, err := Create(fsys, "db", 5, &Edit{StoreID: 1})
	require.NoError(t, err)
	tail, err := OpenTail(fsys, "db", 5)
	require.NoError(t, err)
	var got []uint64
	read := func() {
		require.NoError(t, tail.Read(func(e *Edit) error { got = append(got, e.LogNum); return nil }))
		require.Equal(t, l.Position(), tail.Position())
	}
	read()
	want := []uint64{0}
	for i := uint64(1); i < 5000; i++ {
		require.NoError(t, l.Append(&Edit{LogNum: i}))
		want = append(want, i)
		if i%7 == 0 {
			read()
			read()
		}
	}
	read()
	require.Equal(t, want, got)
	require.NoError(t, tail.Close())
	require.NoError(t, l.Close())
	require.True(t, Position{1, 9}.Before(Position{2, 1}))
	require.True(t, Position{2, 0}.Before(Position{2, 1}))
	require.False(t, Position{2, 1}.Before(Position{2, 1}))
}
