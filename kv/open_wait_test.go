package kv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
)

func TestOpenContextWaitsForTheLock(t *testing.T) {
	noneLeft := leakCheck()
	dir := filepath.Join(t.TempDir(), "store")
	cmd, stdin := holdOpen(t, dir)
	_, err := Open(dir, nil)
	locked, ok := errors.AsType[*LockedError](err)
	require.True(t, ok)
	require.Equal(t, LockedError{Path: filepath.Join(dir, "LOCK"), PID: cmd.Process.Pid}, *locked)

	for _, o := range []*Options{nil, {ReadOnly: true}} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := OpenContext(ctx, dir, o)
			done <- err
		}()
		cancel()
		err := <-done
		require.ErrorIs(t, err, context.Canceled)
		if errors.Is(err, ErrLocked) { // it was not canceled before it began
			require.ErrorContains(t, err, strconv.Itoa(cmd.Process.Pid))
		}

		for wait := time.Millisecond; ; wait *= 2 { // until the context ends after the first attempt
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			_, err = OpenContext(ctx, dir, o)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			if errors.Is(err, ErrLocked) {
				break
			}
			require.Less(t, wait, 5*time.Minute)
		}
		locked, ok = errors.AsType[*LockedError](err)
		require.True(t, ok)
		require.Equal(t, cmd.Process.Pid, locked.PID)
	}
	deadline, cancel := context.WithTimeout(t.Context(), firstLockWait)
	defer cancel()
	d := &DB{place: place{dir: dir, fs: vfs.OS}}
	err = waitLock(deadline, d.tryLock)
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	locked, ok = errors.AsType[*LockedError](err)
	require.True(t, ok)
	require.Equal(t, cmd.Process.Pid, locked.PID)
	noneLeft()

	opened := make(chan *DB)
	go func() {
		db, err := OpenContext(t.Context(), dir, nil)
		if err != nil {
			t.Error(err)
		}
		opened <- db
	}()
	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait())
	db := <-opened
	require.NotNil(t, db)
	require.NoError(t, db.Set([]byte("k"), []byte("v"), nil))
	require.NoError(t, db.Close())
}

// holdUntilEOF is the child that has a store open until its input ends.
func holdUntilEOF(dir string) error {
	db, err := Open(dir, nil)
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, db.Close())
}

// holdOpen starts a process that has a store open until its input ends.
func holdOpen(t *testing.T, dir string) (cmd *exec.Cmd, stdin io.Closer) {
	t.Helper()
	cmd = storetest.Child(t, "hold", dir, 0)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "open\n", line)
	return cmd, stdin
}

func TestAStoreThatAnotherProcessHasIsLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	cmd, stdin := holdOpen(t, dir)
	for _, o := range []*Options{nil, {ReadOnly: true}} {
		_, err := Open(dir, o)
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorContains(t, err, filepath.Join(dir, "LOCK"))
		require.ErrorContains(t, err, strconv.Itoa(cmd.Process.Pid))
	}
	require.ErrorIs(t, Verify(t.Context(), dir, io.Discard), ErrLocked)

	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait())
	db, err := Open(dir, nil)
	require.NoError(t, err, "the lock goes with its holder")
	require.NoError(t, db.Close())
}
