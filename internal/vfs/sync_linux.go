package vfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// syncFile uses fdatasync(2), which writes the file's length if that has changed
// but spares the journal a change of its times.
func syncFile(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	err = conn.Control(func(fd uintptr) {
		for {
			if syncErr = unix.Fdatasync(int(fd)); !errors.Is(syncErr, unix.EINTR) {
				return
			}
		}
	})
	if err != nil {
		syncErr = fs.ErrClosed // the one reason not to call the function
	}
	return pathError("fdatasync", f.Name(), syncErr)
}
