//go:build !windows && !plan9

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// neverSyncs reports whether an error of SyncDir says that the directory can never be synced: the
// process may not read it, or its file system is read-only or has no syncs.
func neverSyncs(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, errors.ErrUnsupported)
}
