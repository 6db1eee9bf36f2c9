package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
)

// MkdirAllDurable makes a directory and the parents it needs. When it returns, their names are
// durable. It goes from the top down and syncs each name before it makes the next. So a call that
// fails, or a process that dies, leaves at most one name that is not durable: that of the last
// directory it made. The next call finds that directory there, and syncs its name.
func MkdirAllDurable(fsys FS, dir string) error {
	var missing []string
	d := filepath.Clean(dir)
	for ; filepath.Dir(d) != d; d = filepath.Dir(d) {
		_, err := fsys.Stat(d)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, d)
	}
	if len(missing) == 0 {
		if err := fsys.MkdirAll(d); err != nil { // it is not a directory
			return err
		}
	}
	if parent := filepath.Dir(d); parent != d {
		// A process that may not sync the parent has not made the directory there.
		if err := fsys.SyncDir(parent); err != nil && !neverSyncs(err) {
			return err
		}
	}
	for _, d := range slices.Backward(missing) {
		if err := fsys.MkdirAll(d); err != nil {
			return err
		}
		if err := fsys.SyncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}
