package followers

import (
	"io"
	"io/fs"

	"github.com/siftkv/siftkv/internal/vfs"
)

// An unwritableFS is one in a directory that takes no new files.
type unwritableFS struct{ vfs.FS }

// Create implements vfs.FS.
func (unwritableFS) Create(name string) (vfs.WriteFile, error) {
	return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrPermission}
}

// Lock implements vfs.FS.
func (unwritableFS) Lock(name string, _ vfs.LockMode) (io.Closer, error) {
	return nil, &fs.PathError{Op: "lock", Path: name, Err: fs.ErrPermission}
}
