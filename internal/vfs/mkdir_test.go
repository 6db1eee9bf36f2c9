package vfs

import (
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A syncDirFS is a file system that notes which directories are synced; some cannot be.
type syncDirFS struct {
	FS
	fails  map[string]error
	synced []string
}

func (s *syncDirFS) SyncDir(dir string) error {
	if err := s.fails[dir]; err != nil {
		return &fs.PathError{Op: "sync", Path: dir, Err: err}
	}
	s.synced = append(s.synced, filepath.ToSlash(dir))
	return s.FS.SyncDir(dir)
}

// The names that a call makes are synced from the top down, none is made below one that
// is not durable, and the next call goes on at the name where a call failed.
func TestMkdirAllDurableGoesOnWhereACallFailed(t *testing.T) {
	all := []string{".", "a", filepath.Join("a", "b")}
	for i, failing := range all {
		s := &syncDirFS{FS: NewMem(), fails: map[string]error{failing: syscall.EIO}}
		require.ErrorIs(t, MkdirAllDurable(s, filepath.Join("a", "b", "c")), syscall.EIO)
		names, err := s.List(failing)
		require.NoError(t, err)
		require.Len(t, names, 1, "the name that is not durable")
		below, err := s.List(filepath.Join(failing, names[0]))
		require.NoError(t, err)
		require.Empty(t, below)

		s.fails, s.synced = nil, nil
		require.NoError(t, MkdirAllDurable(s, filepath.Join("a", "b", "c")))
		require.Equal(t, []string{".", "a", "a/b"}[i:], s.synced)
	}
}

// A directory can be used that is there below one which the process may not sync. One that
// has to be made there cannot.
func TestMkdirAllDurableBelowADirectoryThatIsNeverSynced(t *testing.T) {
	errs := []error{syscall.EIO, fs.ErrPermission, syscall.EINVAL}
	for i, err := range errs {
		s := &syncDirFS{FS: NewMem(), fails: map[string]error{".": err}}
		require.ErrorIs(t, MkdirAllDurable(s, "a"), err)
		if i > 0 && !slices.Contains([]string{"windows", "plan9"}, runtime.GOOS) {
			require.NoError(t, MkdirAllDurable(s, "a"))
		} else {
			require.ErrorIs(t, MkdirAllDurable(s, "a"), err)
		}
	}
}

func TestMkdirAllDurableWhereAFileIs(t *testing.T) {
	m := NewMem()
	f, err := m.Create("f")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Error(t, MkdirAllDurable(m, "f"))
	require.Error(t, MkdirAllDurable(m, filepath.Join("f", "g")))
}
