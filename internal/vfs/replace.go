package vfs

import (
	"errors"
	"path/filepath"
)

// TempSuffix is what ReplaceFile adds to a name while it writes. A file with such a name is worthless after a crash.
const TempSuffix = ".tmp"

// ReplaceFile gives a file new contents in one step; there need not have been one. When
// it returns, the change is durable, and so are the names of all other files in the
// directory. After an error the file may be as before or as wanted, never in between.
func ReplaceFile(fsys FS, name string, data []byte) error {
	temp := name + TempSuffix
	if err := writeFile(fsys, temp, data); err != nil {
		return err
	}
	if err := fsys.Rename(temp, name); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}

func writeFile(fsys FS, name string, data []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
