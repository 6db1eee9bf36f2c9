package repair

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A countingFS counts the bytes that are read of one file.
type countingFS struct {
	vfs.FS
	name string
	read atomic.Int64
}

func (c *countingFS) Open(name string) (vfs.ReadFile, error) {
	f, err := c.FS.Open(name)
	if err == nil && filepath.Base(name) == c.name {
		f = countingFile{f, c}
	}
	return f, err
}

type countingFile struct {
	vfs.ReadFile
	fs *countingFS
}

func (f countingFile) ReadAt(b []byte, off int64) (int, error) {
	f.fs.read.Add(int64(len(b)))
	return f.ReadFile.ReadAt(b, off)
}

// What stands behind a table that the manifest lists is not the table's: it is not read, let alone held in memory, and
// nothing is lost.
func TestBytesBehindATableAreNotRead(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	h := store(t, dir, 6)
	name := filesOf(t, dir, manifest.FileTable)[0]
	info, err := os.Stat(name)
	require.NoError(t, err)
	const behind = 1 << 30
	require.NoError(t, os.Truncate(name, info.Size()+behind)) // it has a hole there
	fsys := &countingFS{FS: vfs.OS, name: filepath.Base(name)}
	r, err := Run(t.Context(), dir, Options{fs: fsys})
	require.NoError(t, err)
	require.Equal(t, "manifest", r.Levels)
	require.Empty(t, r.Lost)
	require.Less(t, fsys.read.Load(), int64(1<<20))
	require.Equal(t, h.now, contents(t, dir))
}
