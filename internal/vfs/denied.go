package vfs

import (
	"errors"
	"io/fs"
	"syscall"
)

// IsDenied reports whether a call failed for a reason that says nothing about the file: the
// process or the system has too many files open or no memory left, or the process may not
// do what it asked for. The same call may work later, on the same bytes.
func IsDenied(err error) bool {
	for _, passing := range []error{fs.ErrPermission, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN,
		syscall.EINTR} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
