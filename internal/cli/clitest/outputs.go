package clitest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// FullDevice returns a device that is full: every write to it fails. If the user may make
// one, it belongs to the test, so that a program that replaces it does no harm. Otherwise
// the user cannot replace that of the system either.
func FullDevice(t *testing.T) string {
	t.Helper()
	const major, minor = 1, 7
	name := filepath.Join(t.TempDir(), "full")
	if err := makeDevice(name, major, minor); err == nil {
		if f, err := os.OpenFile(name, os.O_WRONLY, 0); err == nil { // the file system may forbid devices
			require.NoError(t, f.Close())
			return name
		}
	}
	return "/dev/full"
}

// RequireSameOwner asserts that two files, or one at two times, belong to the same user and group.
func RequireSameOwner(t *testing.T, a, b fs.FileInfo) {
	t.Helper()
	require.Equal(t, ownerOf(a), ownerOf(b))
}

// NamedPipe makes a pipe that has a name.
func NamedPipe(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, makePipe(name))
}

// FullOutput is a standard output that is full.
func FullOutput(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// ClosedPipe is a standard output without a reader.
func ClosedPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

// PublicDir is a temporary directory that every user may enter.
func PublicDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) //nolint:gosec // on purpose
	require.NoError(t, os.Chmod(dir, 0o755))               //nolint:gosec // on purpose
	return dir
}

// Names returns the names in a directory.
func Names(t *testing.T, dir string) []string {
	t.Helper()
	names := []string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// RequireType asserts that a file is still a device, a pipe or a link.
func RequireType(t *testing.T, name string, want fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(name)
	require.NoError(t, err)
	require.Equal(t, want, info.Mode().Type(), name)
}
