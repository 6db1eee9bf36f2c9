//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// LocksEndWithProcess says that locks keep other processes out, and that the lock of a process that was killed is free.
const LocksEndWithProcess = true

// tryLock takes a flock(2) lock, which belongs to the open file: two opens in one process exclude each other as two
// processes do, and the kernel releases it when the process dies.
func tryLock(f *os.File, mode LockMode) (ok bool, err error) {
	how := unix.LOCK_EX
	if mode == Shared {
		how = unix.LOCK_SH
	}
	err = flock(f, how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func unlock(f *os.File, _ LockMode) error { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	var err error
	for {
		if err = unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return pathError("flock", f.Name(), err)
}

func processGone(pid int) bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

func isReadOnlyFS(err error) bool { return errors.Is(err, unix.EROFS) }
