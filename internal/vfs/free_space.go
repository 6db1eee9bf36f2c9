package vfs

import "math"

// A FreeSpacer is a file system that knows how much room it has.
type FreeSpacer interface {
	// FreeSpace returns how many bytes this process may still write to the file system that has a directory, about.
	FreeSpace(dir string) (int64, error)
}

// FreeSpace returns how many bytes may still be written to the file system that has a directory: math.MaxInt64 if that
// is not known.
func FreeSpace(fsys FS, dir string) int64 {
	if s, ok := fsys.(FreeSpacer); ok {
		if free, err := s.FreeSpace(dir); err == nil {
			return free
		}
	}
	return math.MaxInt64
}
