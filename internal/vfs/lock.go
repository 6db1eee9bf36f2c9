package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A LockMode says which other holders a lock excludes.
type LockMode int

const (
	// Exclusive excludes all other holders.
	Exclusive LockMode = iota
	// Shared excludes exclusive holders, and admits other shared ones.
	Shared
	// Existing is Shared for a file that is there. If it is missing, the error matches fs.ErrNotExist.
	Existing
)

// ErrLocked is what every *LockedError matches.
var ErrLocked = errors.New("siftkv: locked")

// A LockedError says that another holder has the lock.
type LockedError struct {
	Path string // of the lock file
	PID  int    // of the exclusive holder; 0 if unknown, as it is for shared holders
}

// Error names the lock file and its holder.
func (e *LockedError) Error() string {
	holder := "another process"
	switch {
	case e.PID == os.Getpid():
		holder = fmt.Sprintf("this process (%d)", e.PID)
	case e.PID != 0:
		holder = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("siftkv: %s is locked by %s; close it there first", e.Path, holder)
}

// Unwrap makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Unwrap() error { return ErrLocked }

// A fileLock is a lock held on an open file. An exclusive holder's process id is in the
// file as decimal digits and a newline, for others to report.
type fileLock struct {
	f      *os.File // nil: a shared lock that there was no need to take
	mode   LockMode
	closed atomic.Bool
}

// maxLockTries bounds how often in a row the file of a lock is opened again since another has its name. There may be
// file systems that do not tell whether two files are the same: then the last that was locked will do.
const maxLockTries = 10

const lockPause = 100 * time.Microsecond // a file system may find a name only later

// lockFile takes a lock by the platform's means: each supplies tryLock, unlock and processGone. A holder may remove the
// file before another locks what it has opened. That would be a lock of no name.
func (o osFS) lockFile(name string, mode LockMode) (io.Closer, error) {
	hold := mode
	if mode == Existing {
		hold = Shared
	}
	for try := 1; ; try++ {
		f, err := o.openLockFile(name, mode)
		if err != nil {
			return nil, err
		}
		if f == nil {
			return &fileLock{mode: hold}, nil
		}
		ok, err := tryLock(f, hold)
		if err == nil && !ok {
			err = &LockedError{Path: name, PID: readPID(f)}
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		named, err := o.hasName(f, name)
		if errors.Is(err, fs.ErrNotExist) {
			time.Sleep(lockPause)
			try, err = 0, nil
		}
		if err == nil && (named || try == maxLockTries) {
			if mode == Exclusive {
				err = writePID(f)
			}
			if err == nil {
				return &fileLock{f: f, mode: hold}, nil
			}
		}
		if err = errors.Join(err, unlock(f, hold), f.Close()); err != nil {
			return nil, err
		}
	}
}

// hasName reports whether an open file has a name. If no file has, the error matches fs.ErrNotExist.
func (o osFS) hasName(f *os.File, name string) (bool, error) {
	other, err := o.openFile(name, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	a, err := f.Stat()
	b, otherErr := other.Stat()
	err = errors.Join(err, otherErr, other.Close())
	return err == nil && os.SameFile(a, b), err
}

// openLockFile opens the file that a lock is taken on. It returns no file and no error if
// a shared lock has no holder to exclude. A file that a reader makes has the directory's
// permissions, so that other readers of the store can open it.
func (o osFS) openLockFile(name string, mode LockMode) (*os.File, error) {
	if err := o.refusePipe(name); err != nil {
		return nil, err
	}
	perm := o.file
	if mode == Existing {
		return o.openFile(name, os.O_RDONLY, 0)
	}
	if mode == Shared {
		f, err := o.openFile(name, os.O_RDONLY, 0)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		if dir, err := o.stat(filepath.Dir(name)); err == nil {
			perm |= dir.perm & readWrite
		}
	}
	f, err := o.openFile(name, os.O_RDWR|os.O_CREATE, perm)
	if mode == Shared && err != nil && IsUnwritable(err) {
		return nil, nil
	}
	return f, err
}

// readWrite are the permissions that files have.
const readWrite fs.FileMode = 0o666

// IsUnwritable reports whether err says that a directory or its file system is not to be written to.
func IsUnwritable(err error) bool { return errors.Is(err, fs.ErrPermission) || isReadOnlyFS(err) }

// Close releases the lock. Later calls return fs.ErrClosed.
func (l *fileLock) Close() error {
	if l.closed.Swap(true) {
		return fs.ErrClosed
	}
	if l.f == nil {
		return nil
	}
	var err error
	if l.mode == Exclusive {
		err = l.f.Truncate(0) // while it is ours, so that no process reads a stale id
	}
	return errors.Join(err, unlock(l.f, l.mode), l.f.Close())
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// readPID returns the process id in a lock file. It returns 0 if there is none, or if its process is gone: then a
// crashed holder left it, and the current holders are shared ones.
func readPID(f *os.File) int {
	var buf [20]byte
	n, err := f.ReadAt(buf[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	digits, whole := strings.CutSuffix(string(buf[:n]), "\n")
	pid, err := strconv.Atoi(digits)
	if err != nil || !whole || pid <= 0 || processGone(pid) {
		return 0
	}
	return pid
}
