//go:build !linux

package measure

import (
	"io/fs"
	"runtime"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// Written is not measured here.
func Written() int64 { return 0 }

// Resident is not measured here.
func Resident() (total, anonymous, peak int64) { return 0, 0, 0 }

// DeviceReadsOf is not measured here.
func DeviceReadsOf(string) DeviceReads { return DeviceReads{engine.Unknown, engine.Unknown} }

// allocated returns the size of a file.
func allocated(info fs.FileInfo) int64 { return info.Size() }

// ChillCaches can do nothing on this platform.
func ChillCaches(string) error { return nil }

// DropCaches can do nothing on this platform, and says so.
func DropCaches(string) (PageCache, error) {
	return PageCache{Left: -1, Impossible: runtime.GOOS + " has no call to drop files from the page cache"}, nil
}
