//go:build !unix && !windows

package vfs

// IsNoSpace reports whether an error says that the file system is full. This platform has no such error.
func IsNoSpace(error) bool { return false }
