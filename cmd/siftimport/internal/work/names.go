package work

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	suffix      = ".sst"
	scratchName = "scratch"
)

// NameOf returns the name of the n-th file, from 0.
func NameOf(n int) string { return fmt.Sprintf("%06d%s", n+1, suffix) }

// Paths returns the paths of the finished files.
func (d *Dir) Paths() (paths []string) {
	for _, f := range d.Files {
		paths = append(paths, filepath.Join(d.Path, f.Name))
	}
	return paths
}

// Scratch makes an empty directory that goes with Close.
func (d *Dir) Scratch() (string, error) {
	path := filepath.Join(d.Path, scratchName)
	return path, os.Mkdir(path, 0o700)
}

// SyncDir makes the names in a directory durable.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
