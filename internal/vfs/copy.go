package vfs

import (
	"errors"
	"io"
)

// copyBytes is how much CopyFile copies between two looks at interrupted.
const copyBytes = 1 << 20

// CopyFile copies a file from one file system to another, which may be the same. When it
// returns, the bytes are durable, and the name is not. An error of interrupted ends it.
func CopyFile(to FS, name string, from FS, original string, interrupted func() error) (err error) {
	r, err := from.Open(original)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	size, err := r.Size()
	if err != nil {
		return err
	}
	w, err := to.Create(name)
	if err != nil {
		return err
	}
	section := io.NewSectionReader(r, 0, size)
	for copied := int64(0); err == nil && copied < size; copied += copyBytes {
		if err = interrupted(); err == nil {
			_, err = io.CopyN(w, section, min(copyBytes, size-copied))
		}
	}
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}
