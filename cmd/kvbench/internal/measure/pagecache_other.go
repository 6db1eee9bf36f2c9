//go:build !linux

package measure

import "runtime"

// ChillCaches can do nothing on this platform.
func ChillCaches(string) error { return nil }

// DropCaches can do nothing on this platform, and says so.
func DropCaches(string) (PageCache, error) {
	return PageCache{Left: -1, Impossible: runtime.GOOS + " has no call to drop files from the page cache"}, nil
}
