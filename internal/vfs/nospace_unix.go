//go:build unix

package vfs

import (
	"errors"
	"syscall"
)

// IsNoSpace reports whether an error says that the file system, or the user's share of it, is full.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
