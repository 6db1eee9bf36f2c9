package stress

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A localDisk is the local disk of a process: a disk of its own, and a directory for the store's cache.
type localDisk struct {
	vfs.FS
	cache string
}

// place returns where a file is.
func (d localDisk) place(name string) (vfs.FS, string) {
	if in, ok := strings.CutPrefix(filepath.ToSlash(name), storeDir); ok && (in == "" || in[0] == '/') {
		return vfs.OS, filepath.Join(d.cache, in)
	}
	return d.FS, name
}

func (d localDisk) Create(name string) (vfs.WriteFile, error) {
	fsys, name := d.place(name)
	return fsys.Create(name)
}

func (d localDisk) Open(name string) (vfs.ReadFile, error) {
	fsys, name := d.place(name)
	return fsys.Open(name)
}

func (d localDisk) Remove(name string) error {
	fsys, name := d.place(name)
	return fsys.Remove(name)
}

func (d localDisk) List(name string) ([]string, error) {
	fsys, name := d.place(name)
	return fsys.List(name)
}

func (d localDisk) MkdirAll(name string) error {
	fsys, name := d.place(name)
	return fsys.MkdirAll(name)
}

func (d localDisk) Stat(name string) (int64, error) {
	fsys, name := d.place(name)
	return fsys.Stat(name)
}

func (d localDisk) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	fsys, name := d.place(name)
	return fsys.Lock(name, mode)
}
