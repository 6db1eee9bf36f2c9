package vfs

import (
	"errors"
	"io"
	"path/filepath"
)

// MkdirAllDurable makes a directory and the parents it needs, and their names durable.
func MkdirAllDurable(fsys FS, dir string) error {
	var parents []string // of what is missing
	for d := filepath.Clean(dir); filepath.Dir(d) != d; d = filepath.Dir(d) {
		if _, err := fsys.Stat(d); err == nil {
			break
		}
		parents = append(parents, filepath.Dir(d))
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for _, parent := range parents {
		if err := fsys.SyncDir(parent); err != nil {
			return err
		}
	}
	return nil
}

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
