//go:build !linux

package measure

import "runtime"

// DropCaches can do nothing on this platform, and says so.
func DropCaches(string) (PageCache, error) {
	return PageCache{Left: -1, Impossible: runtime.GOOS + " has no call to drop files from the page cache"}, nil
}
