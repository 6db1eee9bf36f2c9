package source

import (
	"os"
	"path/filepath"
	"slices"
)

// Shadow fills an empty directory with symbolic links to the files of others but those that are named, and returns
// it. A library that insists on a lock file, or on removing something, does that there: the store stays as it is.
func Shadow(shadow string, without []string, dirs ...string) (string, error) {
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			return "", err
		}
		for _, f := range files {
			if f.IsDir() || slices.Contains(without, f.Name()) {
				continue
			}
			if err := os.Symlink(filepath.Join(dir, f.Name()), filepath.Join(shadow, f.Name())); err != nil {
				return "", err
			}
		}
	}
	return shadow, nil
}

// DirSize returns what the files of directories take; what cannot be read counts nothing.
func DirSize(dirs ...string) (size int64) {
	for _, dir := range dirs {
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			if info, err := f.Info(); err == nil && info.Mode().IsRegular() {
				size += info.Size()
			}
		}
	}
	return size
}
