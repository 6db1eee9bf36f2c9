package storetest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// RandomBytes returns n bytes that no compression shortens.
func RandomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// ReadDir returns the content of every file under dir, by path.
func ReadDir(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	files := map[string]string{}
	require.NoError(tb, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	}))
	return files
}

// WriteDir writes files into a directory, by their names in it.
func WriteDir(tb testing.TB, dir string, files map[string]string) {
	tb.Helper()
	require.NoError(tb, os.MkdirAll(dir, 0o755))
	for name, data := range files {
		require.NoError(tb, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
}

// CopyDir remembers what a directory has. The function that it returns writes that there again.
func CopyDir(t testing.TB, fsys vfs.FS, dir string) (restore func()) {
	t.Helper()
	names, err := fsys.List(dir)
	require.NoError(t, err)
	files := map[string][]byte{}
	for _, name := range names {
		files[name] = ReadAll(t, fsys, filepath.Join(dir, name))
	}
	return func() {
		for name, data := range files {
			w, err := fsys.Create(filepath.Join(dir, name))
			require.NoError(t, err)
			_, err = w.Write(data)
			require.NoError(t, errors.Join(err, w.Close()))
		}
	}
}

// OnlyFile returns the path of the only file of a kind in a directory.
func OnlyFile(t testing.TB, dir string, kind manifest.FileKind) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		if k, _ := manifest.ParseFileName(e.Name()); k == kind {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	require.Len(t, names, 1)
	return names[0]
}

// NewestFile returns the path of the file of a kind with the largest number in a directory.
func NewestFile(t testing.TB, fsys vfs.FS, dir string, kind manifest.FileKind) string {
	t.Helper()
	names, err := fsys.List(dir)
	require.NoError(t, err)
	newest, found := uint64(0), false
	for _, name := range names {
		if k, num := manifest.ParseFileName(name); k == kind {
			newest, found = max(newest, num), true
		}
	}
	require.True(t, found)
	return manifest.Path(dir, kind, newest)
}

// RegisteredReaders returns the names of the files with which readers register in a store's directory.
func RegisteredReaders(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if kind, _ := manifest.ParseFileName(e.Name()); kind == manifest.FileReader {
			names = append(names, e.Name())
		}
	}
	return names
}

// ReadAll returns the content of a file. It requires all bytes of the file's size.
func ReadAll(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	f, err := fsys.Open(name)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	_, err = io.ReadFull(io.NewSectionReader(f, 0, size), b)
	require.NoError(t, errors.Join(err, f.Close()))
	return b
}

// Rewrite changes a file's bytes.
func Rewrite(t testing.TB, name string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, change(data), 0o600))
}

// Flip returns a change for Rewrite, of one bit of the byte at an offset.
func Flip(at int) func([]byte) []byte {
	return func(b []byte) []byte {
		b[at] ^= 0x10
		return b
	}
}

// IngestFile writes a sorted file on a file system, and returns its path. Writes are "key=value", "-key" for a delete,
// and "a..b" for a range delete; keys ascend.
func IngestFile(tb testing.TB, fsys vfs.FS, path string, o *sstable.WriterOptions, writes ...string) string {
	tb.Helper()
	f, err := fsys.Create(path)
	require.NoError(tb, err)
	w := sstable.NewWriter(f, o)
	for _, s := range writes {
		key, value, set := bytes.Cut([]byte(s), []byte("="))
		lo, hi, ranged := bytes.Cut([]byte(s), []byte(".."))
		switch {
		case set:
			err = w.Set(key, value)
		case ranged:
			err = w.DeleteRange(lo, hi)
		default:
			err = w.Delete(key[1:])
		}
		require.NoError(tb, err)
	}
	_, err = w.Finish()
	require.NoError(tb, errors.Join(err, f.Close()))
	return path
}

// Filter returns the filter policy that a text names. It panics if there is none.
func Filter(spec string) filterpolicy.Policy {
	p, err := filterpolicy.Parse(spec)
	if err != nil {
		panic(err)
	}
	return p
}

// EnvInt returns the number that a variable of the environment has; byDefault if it has none.
func EnvInt(name string, byDefault int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return byDefault
}

// RangePolicies are those with which stores are compared with their models.
func RangePolicies(tb testing.TB) []filterpolicy.RangePolicy {
	tb.Helper()
	policies := []filterpolicy.RangePolicy{exactranges.Policy{}}
	for _, spec := range []string{"cut:6", "cut:0"} {
		p, err := filterpolicy.ParseRange(spec)
		require.NoError(tb, err)
		policies = append(policies, p)
	}
	return policies
}

// LeadingNumber returns the number that a value begins with, before a space.
func LeadingNumber(t testing.TB, v []byte) int64 {
	head, _, _ := bytes.Cut(v, []byte(" "))
	n, err := strconv.ParseInt(string(head), 10, 64)
	Fine(t, err)
	return n
}

// BlobsOnDisk returns the names of the blob files in the directory of a store.
func BlobsOnDisk(t testing.TB, fsys vfs.FS, dir string) (found []string) {
	t.Helper()
	names, err := fsys.List(dir)
	require.NoError(t, err)
	for _, name := range names {
		if kind, _ := manifest.ParseFileName(name); kind == manifest.FileBlob {
			found = append(found, name)
		}
	}
	return found
}
