package vfs_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// holdLock names the variable that makes this test binary a lock's holder.
const holdLock = "SIFTKV_TEST_HOLD_LOCK"

func TestMain(m *testing.M) {
	if name := os.Getenv(holdLock); name != "" {
		os.Exit(hold(name))
	}
	os.Exit(m.Run())
}

// hold takes a lock, says so, and waits for the end of its input: to release the
// lock if it was told to, and to die with it if not.
func hold(name string) int {
	l, err := vfs.OS.Lock(name, vfs.Exclusive)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("locked")
	word, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) || word == "" {
		return 2
	}
	if err := l.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// startHolder starts a process that holds a lock until it is told what to do.
func startHolder(t *testing.T, name string) (cmd *exec.Cmd, tell io.WriteCloser) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd = exec.Command(self)
	cmd.Env = append(os.Environ(), holdLock+"="+name)
	tell, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "locked\n", line)
	return cmd, tell
}

func TestLocks(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "LOCK")
		refused := func(mode vfs.LockMode, pid int) {
			t.Helper()
			_, err := fsys.Lock(name, mode)
			require.ErrorIs(t, err, vfs.ErrLocked)
			var locked *vfs.LockedError
			require.ErrorAs(t, err, &locked)
			require.Equal(t, vfs.LockedError{Path: name, PID: pid}, *locked)
			require.ErrorContains(t, err, name)
		}
		x, err := fsys.Lock(name, vfs.Exclusive)
		require.NoError(t, err)
		refused(vfs.Exclusive, os.Getpid())
		refused(vfs.Shared, os.Getpid())
		require.NoError(t, x.Close())
		require.ErrorIs(t, x.Close(), fs.ErrClosed)

		s1, err := fsys.Lock(name, vfs.Shared)
		require.NoError(t, err)
		s2, err := fsys.Lock(name, vfs.Shared)
		require.NoError(t, err)
		refused(vfs.Exclusive, 0)
		require.NoError(t, s1.Close())
		refused(vfs.Exclusive, 0)
		require.NoError(t, s2.Close())

		x, err = fsys.Lock(name, vfs.Exclusive)
		require.NoError(t, err)
		require.NoError(t, x.Close())
		names, err := fsys.List(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"LOCK"}, names, "the file stays")
	})
}

// A holder removes the file of its lock at times. What others have opened before is a lock of no name then, and holds
// nothing: they take that of the file which has the name.
func TestALockIsOfTheFileThatHasTheName(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "LOCK")
		var holders, taken atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for taken.Load() < 2000 {
					l, err := fsys.Lock(name, vfs.Exclusive)
					if errors.Is(err, vfs.ErrLocked) {
						continue
					}
					if !assert.NoError(t, err) || !assert.EqualValues(t, 1, holders.Add(1)) {
						taken.Store(2000)
						return
					}
					taken.Add(1)
					holders.Add(-1)
					_ = fsys.Remove(name) // Windows refuses
					assert.NoError(t, l.Close())
				}
			})
		}
		all.Wait()
	})
}

// A look at a lock makes no file.
func TestALockThatMustExist(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "LOCK")
		_, err := fsys.Lock(name, vfs.Existing)
		require.ErrorIs(t, err, fs.ErrNotExist)
		names, err := fsys.List(dir)
		require.NoError(t, err)
		require.Empty(t, names)
		x, err := fsys.Lock(name, vfs.Exclusive)
		require.NoError(t, err)
		_, err = fsys.Lock(name, vfs.Existing)
		require.ErrorIs(t, err, vfs.ErrLocked)
		require.NoError(t, x.Close())
		s1, err := fsys.Lock(name, vfs.Existing)
		require.NoError(t, err)
		s2, err := fsys.Lock(name, vfs.Shared)
		require.NoError(t, err)
		_, err = fsys.Lock(name, vfs.Exclusive)
		require.ErrorIs(t, err, vfs.ErrLocked)
		require.NoError(t, errors.Join(s1.Close(), s2.Close()))
	})
}

func TestLockNamesTheOtherProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	cmd, tell := startHolder(t, name)
	for _, mode := range []vfs.LockMode{vfs.Exclusive, vfs.Shared} {
		_, err := vfs.OS.Lock(name, mode)
		var locked *vfs.LockedError
		require.ErrorAs(t, err, &locked)
		require.Equal(t, vfs.LockedError{Path: name, PID: cmd.Process.Pid}, *locked)
		require.EqualError(t, err, fmt.Sprintf("siftkv: %s is locked by process %d; close it there first", name,
			cmd.Process.Pid))
	}
	_, err := io.WriteString(tell, "release\n")
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Empty(t, content, "a released lock names nobody")
}

// requireNobodyNamed requires that a lock is free, and that who is in the way of others is not told from its file.
func requireNobodyNamed(t *testing.T, name, why string) {
	t.Helper()
	s, err := vfs.OS.Lock(name, vfs.Shared)
	require.NoError(t, err)
	_, err = vfs.OS.Lock(name, vfs.Exclusive)
	var locked *vfs.LockedError
	require.ErrorAs(t, err, &locked)
	require.Zero(t, locked.PID, why)
	require.NoError(t, s.Close())
}

func TestLockEndsWithItsProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	cmd, tell := startHolder(t, name)
	require.NoError(t, tell.Close())
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, 2, exit.ExitCode())
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%d\n", cmd.Process.Pid), string(content), "it died holding the lock")

	requireNobodyNamed(t, name, "the dead process is not the holder")
	x, err := vfs.OS.Lock(name, vfs.Exclusive)
	require.NoError(t, err)
	require.NoError(t, x.Close())
}

func TestLockFileWithForeignContent(t *testing.T) {
	for _, content := range []string{"", "\n", "-4\n", "abc\n", "12", strings.Repeat("9", 19) + "\n",
		strings.Repeat("1", 99)} {
		name := filepath.Join(t.TempDir(), "LOCK")
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
		requireNobodyNamed(t, name, content)
	}
}
