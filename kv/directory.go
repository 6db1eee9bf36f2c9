package kv

import (
	"errors"
	"io/fs"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A store keeps its directory open. Its files are those of this directory, even if another one has its name by then:
// an operator may put a backup there. See docs/adr/0031-a-store-keeps-its-directory-open.md.

// openDirectory opens the directory of a store, unless it is in memory or in an object store, and makes it if it is not
// there. A directory that a read-only store does not find is no error yet.
func (o *Options) openDirectory(dir string) (*vfs.Directory, error) {
	if o.Objects != nil {
		return nil, nil
	}
	fsys, d, err := vfs.OpenDirectory(o.harness.FS, dir)
	if errors.Is(err, fs.ErrNotExist) {
		if o.ReadOnly {
			return nil, nil
		}
		if err = vfs.MkdirAllDurable(o.harness.FS, dir); err == nil {
			fsys, d, err = vfs.OpenDirectory(o.harness.FS, dir)
		}
	}
	if err != nil {
		return nil, err
	}
	o.harness.FS = fsys
	return d, nil
}

// verifyDirectory returns an error if the directory's name leads elsewhere by now: writes would be safe, but not where
// they are looked for. A store that closes goes on, as what is in memory has to get somewhere.
func (d *DB) verifyDirectory() error {
	if d.closed.Load() {
		return nil
	}
	return d.directory.Check()
}
