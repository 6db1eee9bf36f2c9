package repair

import (
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/vfs"
)

// An unreadableFS cannot read a piece of one file from its n-th reading on.
type unreadableFS struct {
	vfs.FS
	name string
	left int
	hit  bool
}

func (u *unreadableFS) Open(name string) (vfs.ReadFile, error) {
	f, err := u.FS.Open(name)
	if err == nil && filepath.Base(name) == u.name {
		f = unreadableFile{f, u}
	}
	return f, err
}

type unreadableFile struct {
	vfs.ReadFile
	fs *unreadableFS
}

func (f unreadableFile) ReadAt(b []byte, off int64) (int, error) {
	if f.fs.left--; f.fs.left < 0 && off < 300 && off+int64(len(b)) > 200 {
		f.fs.hit = true
		return 0, &fs.PathError{Op: "read", Path: f.fs.name, Err: syscall.EIO}
	}
	return f.ReadFile.ReadAt(b, off)
}

// What a device cannot read may be read by the next attempt: a repair in place of a
// damaged table ends with the error, whenever it comes, and changes nothing. One into
// another directory takes what can be read.
func TestARepairInPlaceDoesNotReadAround(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine repairs")
	t.Run("table", func(t *testing.T) { requireNoReadAround(t, store, manifest.FileTable) })
	t.Run("blob file", func(t *testing.T) { requireNoReadAround(t, separatedStore, manifest.FileBlob) })
}

func requireNoReadAround(t *testing.T, make func(*testing.T, string, uint64) *history, kind manifest.FileKind) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	h := make(t, dir, 6)
	names := filesOf(t, dir, kind)
	name := names[len(names)-1]
	damages["truncated"](t, name, rand.New(rand.NewPCG(7, 7)))
	before := snapshotDir(t, dir)
	hits := 0
	for n := 0; n < 1 || hits == n; n++ {
		fsys := &unreadableFS{FS: vfs.OS, name: filepath.Base(name), left: n}
		_, err := Run(t.Context(), dir, Options{fs: fsys, DryRun: true})
		if !fsys.hit {
			require.NoError(t, err)
			break
		}
		hits++
		require.ErrorIs(t, err, syscall.EIO)
		fsys.left = n
		_, err = Run(t.Context(), dir, Options{fs: fsys})
		require.ErrorIs(t, err, syscall.EIO)
		require.Equal(t, before, snapshotDir(t, dir))

		fsys.left = n
		out := filepath.Join(t.TempDir(), "out")
		r, err := Run(t.Context(), dir, Options{fs: fsys, Out: out})
		require.NoError(t, err)
		requireCovered(t, h, r, contents(t, out), "read around")
	}
	require.Greater(t, hits, 1, "the survey reads the file, and so does what salvages it")
}
