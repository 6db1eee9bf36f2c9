package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// LocksEndWithProcess says that locks keep other processes out, and that the lock of a process that was killed is free.
const LocksEndWithProcess = true

// lockOffsetHigh puts the locked byte well past the file's end. Windows locks are
// mandatory, and the process id at the file's start is for others to read.
const lockOffsetHigh = 1 << 30

// tryLock locks one byte of the file. The lock belongs to the handle and goes with it.
func tryLock(f *os.File, mode LockMode) (ok bool, err error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if mode == Exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	at := windows.Overlapped{OffsetHigh: lockOffsetHigh}
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, pathError("LockFileEx", f.Name(), err)
}

func unlock(f *os.File, _ LockMode) error {
	at := windows.Overlapped{OffsetHigh: lockOffsetHigh}
	return pathError("UnlockFileEx", f.Name(), windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at))
}

func processGone(int) bool { return false }

func isReadOnlyFS(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }
