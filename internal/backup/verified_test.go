package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
)

func TestAFileThatEndsEarlyIsDamaged(t *testing.T) {
	t.Parallel()
	whole := bytes.Repeat([]byte("bytes"), 100)
	f := vfs.FileOf(whole)
	read, err := readWhole("name", f, f.ReadAt)
	require.NoError(t, err)
	require.Equal(t, whole, read)
	_, err = readWhole("name", f, bytes.NewReader(whole[:200]).ReadAt)
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, "offset 200")
	failed := errors.New("failed")
	_, err = readWhole("name", f, func([]byte, int64) (int, error) { return 0, failed })
	require.ErrorIs(t, err, failed)
}

// A rereadFS gives files of which ReadAt has a wrong byte. ReadAgain has the right ones, unless again is set.
type rereadFS struct {
	vfs.FS
	again bool
}

type rereadFile struct {
	vfs.ReadFile
	again bool
}

func (r rereadFS) Open(name string) (vfs.ReadFile, error) {
	f, err := r.FS.Open(name)
	return rereadFile{f, r.again}, err
}

func (f rereadFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.ReadFile.ReadAt(p, off)
	p[0] ^= 1
	return n, err
}

func (f rereadFile) ReadAgain(p []byte, off int64) (int, error) {
	if f.again {
		return f.ReadAt(p, off)
	}
	return f.ReadFile.ReadAt(p, off)
}

// A sorted file is given as it is verified. One that is damaged on its way is read again, and one that is another file
// is refused. Other files are not read.
func TestVerifiedFilesAreThoseThatAreRead(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	require.NoError(t, fsys.MkdirAll("db"))
	var b bytes.Buffer
	w := sstable.NewWriter(&b, &sstable.WriterOptions{ID: 7})
	for i := range 1000 {
		require.NoError(t, w.Add(base.MakeKey(fmt.Appendf(nil, "%06d", i), 1, base.KindSet), []byte("value")))
	}
	_, err := w.Finish()
	require.NoError(t, err)
	name := manifest.Path("db", manifest.FileTable, 3)
	require.NoError(t, vfs.ReplaceFile(fsys, name, b.Bytes()))
	other := filepath.Join("db", "OTHER")
	require.NoError(t, vfs.ReplaceFile(fsys, other, []byte("other")))

	for _, c := range []struct {
		fsys    vfs.FS
		id      uint64
		damaged bool
	}{
		{fsys, 0, false}, // not known
		{fsys, 7, false},
		{fsys, 8, true},
		{rereadFS{fsys, false}, 7, false},
		{rereadFS{fsys, true}, 7, true},
	} {
		v := VerifiedFS{FS: c.fsys, IDs: map[string]uint64{filepath.Base(name): c.id}}
		f, err := v.Open(name)
		if c.damaged {
			require.ErrorIs(t, err, base.ErrCorruption)
			continue
		}
		require.NoError(t, err)
		data := make([]byte, b.Len())
		_, err = io.ReadFull(io.NewSectionReader(f, 0, int64(b.Len())), data)
		require.NoError(t, err)
		require.Equal(t, b.Bytes(), data)
		require.NoError(t, f.Close())
		f, err = v.Open(other)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	_, err = VerifiedFS{FS: fsys}.Open(filepath.Join("db", "MISSING"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}
