package work

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

const (
	suffix      = ".sst"
	scratchName = "scratch"
)

// NameOf returns the name of the n-th file, from 0.
func NameOf(n int) string { return fmt.Sprintf("%06d%s", n+1, suffix) }

// NumberOf returns the number of a file that NameOf has named.
func NumberOf(name string) int {
	n := 0
	_, _ = fmt.Sscanf(name, "%d"+suffix, &n)
	return n - 1
}

// Paths returns the paths of the finished files.
func (d *Dir) Paths() (paths []string) {
	for _, f := range d.Files {
		paths = append(paths, filepath.Join(d.Path, f.Name))
	}
	return paths
}

// Ranges returns ranges of keys that are each about as large as a finished file, and are all keys together.
func (d *Dir) Ranges() []source.Range {
	all := make([]source.Range, max(len(d.Files), 1))
	for i := range len(all) - 1 {
		end := append(bytes.Clone(d.Files[i].Last), 0)
		all[i].To, all[i+1].From = end, end
	}
	return all
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
