package measure

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// OnDisk returns the bytes and the number of the files in dir, as allocated: holes do not
// count. A file that goes meanwhile counts or does not.
func OnDisk(dir string) (bytes int64, files int, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		bytes += allocated(info)
		files++
		return nil
	})
	return bytes, files, err
}

// ignoreGone forgives that a store removes files meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
