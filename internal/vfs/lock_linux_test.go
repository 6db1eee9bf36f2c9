package vfs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/siftkv/siftkv/internal/vfs"
)

// unprivileged makes file permissions count for this thread, even for root.
func unprivileged(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread()
	const nobody = 65534
	before, err := unix.SetfsuidRetUid(nobody)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := unix.SetfsuidRetUid(before)
		require.NoError(t, err)
		runtime.UnlockOSThread()
	})
}

func TestSharedLockNeedsNoWritePermission(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "LOCK")
	require.NoError(t, os.WriteFile(name, nil, 0o444))
	require.NoError(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { require.NoError(t, os.Chmod(dir, 0o755)) }) // or only root can remove what is in it
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	x, err := vfs.OS.Lock(name, vfs.Shared)
	require.NoError(t, err)
	require.NoError(t, x.Close())

	unprivileged(t)
	_, err = vfs.OS.Lock(name, vfs.Exclusive)
	require.ErrorIs(t, err, fs.ErrPermission)
	s1, err := vfs.OS.Lock(name, vfs.Shared)
	require.NoError(t, err)
	s2, err := vfs.OS.Lock(name, vfs.Shared)
	require.NoError(t, err)
	require.NoError(t, s1.Close())
	require.NoError(t, s2.Close())

	missing := filepath.Join(dir, "MISSING")
	_, err = vfs.OS.Lock(missing, vfs.Exclusive)
	require.ErrorIs(t, err, fs.ErrPermission)
	s, err := vfs.OS.Lock(missing, vfs.Shared)
	require.NoError(t, err, "nobody can hold a lock that nobody can create")
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Close(), fs.ErrClosed)
}

// A pipe is no directory. To open it would wait for a writer.
func TestListOfAPipeFails(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(name, 0o600))
	_, err := vfs.OS.List(name)
	require.ErrorIs(t, err, unix.ENOTDIR)
}

func TestSyncReportsTheKernelsError(t *testing.T) {
	// A pipe cannot be synced.
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(name, 0o600))
	r, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	w, err := vfs.OS.Create(name)
	require.NoError(t, err)
	err = w.Sync()
	require.ErrorIs(t, err, unix.EINVAL)
	require.ErrorContains(t, err, name)
	require.NoError(t, w.Close())
	require.NoError(t, r.Close())
}
