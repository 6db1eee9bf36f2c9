//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Flock takes a shared flock(2) lock of a file or a directory until what it returns is closed. A file that is not there
// is locked by nobody. The error matches ErrInUse if somebody has an exclusive lock.
func Flock(path string) (io.Closer, error) {
	return lock(path, func(fd uintptr) error { return unix.Flock(int(fd), unix.LOCK_SH|unix.LOCK_NB) })
}

// RecordLock is Flock for a lock of fcntl(2), which is the process's: opening and closing the file a second time
// loses it.
func RecordLock(path string) (io.Closer, error) {
	return lock(path, func(fd uintptr) error {
		return unix.FcntlFlock(fd, unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart})
	})
}

func lock(path string, take func(fd uintptr) error) (io.Closer, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return io.NopCloser(nil), nil
	}
	if err != nil {
		return nil, err
	}
	if err := take(f.Fd()); err != nil {
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			err = ErrInUse
		}
		return nil, errors.Join(fmt.Errorf("%s %w", path, err), f.Close())
	}
	return f, nil
}

// LockAlone takes an exclusive lock of a file, which it creates.
func LockAlone(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, errors.Join(fmt.Errorf("%s %w", path, err), f.Close())
	}
	return f, nil
}
