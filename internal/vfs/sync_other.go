//go:build !linux

package vfs

import "os"

// syncFile uses what package os does for the platform: fsync(2), F_FULLFSYNC on Darwin, FlushFileBuffers on Windows.
func syncFile(f *os.File) error { return f.Sync() }
