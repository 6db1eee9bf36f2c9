//go:build !linux

package measure

import (
	"io/fs"
	"runtime"
)

// ProcSelf has nothing to read here.
func ProcSelf(_, _ string) int64 { return 0 }

// Written is not measured here.
func Written() int64 { return 0 }

// allocated returns the size of a file.
func allocated(info fs.FileInfo) int64 { return info.Size() }

// ChillCaches can do nothing on this platform.
func ChillCaches(string) error { return nil }

// DropCaches can do nothing on this platform, and says so.
func DropCaches(string) (PageCache, error) {
	return PageCache{Left: -1, Impossible: runtime.GOOS + " has no call to drop files from the page cache"}, nil
}
