package vfs

import (
	"errors"

	"golang.org/x/sys/windows"
)

// IsNoSpace reports whether an error says that the file system, or the user's share of it, is full.
func IsNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
