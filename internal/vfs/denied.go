package vfs

import (
	"errors"
	"io/fs"
	"syscall"
)

// IsDenied reports whether a call failed for a reason that says nothing about the file. The process
// lacks permission, or the process or the system has too many open files or no memory left. The
// same call may work later, on the same bytes.
func IsDenied(err error) bool {
	for _, passing := range []error{fs.ErrPermission, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN,
		syscall.EINTR} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
