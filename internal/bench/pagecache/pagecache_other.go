//go:build !linux

package pagecache

import "runtime"

// Drop can do nothing on this platform, and says so.
func Drop(string) (State, error) {
	return State{Left: -1, Impossible: runtime.GOOS + " has no call to drop files from the page cache"}, nil
}
