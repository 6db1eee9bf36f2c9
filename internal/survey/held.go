package survey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Held is the directory of a store, which is open and locked: files are reached through it, whatever its name means
// by then.
type Held struct {
	given     vfs.FS
	name      string // as the caller has it
	fs        vfs.FS // has the directory open
	dir       string // by which fs knows it
	directory *vfs.Directory
	lock      io.Closer
	frozen    *frozenFS // nil: no program writes to the store
}

// Hold opens and locks the directory of a store. It leaves no lock file in a directory that holds no store; its errors
// are those of Take then.
func Hold(fsys vfs.FS, dir string, mode vfs.LockMode) (*Held, error) {
	h, err := openHeld(fsys, dir)
	if err != nil {
		return nil, err
	}
	if h.lock, err = Lock(h.fs, h.dir, mode); err != nil {
		return nil, errors.Join(err, h.directory.Close())
	}
	return h, nil
}

func openHeld(fsys vfs.FS, dir string) (*Held, error) {
	full, err := vfs.Absolute(fsys, dir)
	if err != nil {
		return nil, err
	}
	h := &Held{given: fsys, name: dir, dir: full}
	h.fs, h.directory, err = vfs.OpenDirectory(fsys, full)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", base.ErrNotExist, dir)
	}
	return h, err
}

// Take is Take of the store that is held.
func (h *Held) Take(ctx context.Context, o Options) (*Store, error) {
	o.FS, o.frozen = h.fs, h.frozen != nil
	s, err := Take(ctx, h.dir, o)
	if s == nil {
		return nil, err
	}
	s.fs, s.Dir = h.given, h.name // it may be read on when it is not held any more
	if o.frozen {
		s.note("a program writes to the store: this is what it was at one moment")
		err = errors.Join(err, h.frozen.outlived(s.Damage))
	}
	return s, err
}

// Moved returns an error that matches vfs.ErrMoved if the directory is not where it was.
func (h *Held) Moved() error {
	if err := h.directory.Check(); err != nil {
		return fmt.Errorf("%w; what was looked at is the directory that was opened as %s", err, h.name)
	}
	return nil
}

// Close gives the directory back. It returns an error that matches vfs.ErrMoved if that is not where it was.
func (h *Held) Close() error { return errors.Join(h.Moved(), h.lock.Close(), h.directory.Close()) }

// Lock takes the store's lock. It leaves no lock file in a directory that holds no
// store; its errors are those of Take then.
func Lock(fsys vfs.FS, dir string, mode vfs.LockMode) (io.Closer, error) {
	names, err := fsys.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := Recognize(fsys, dir, names); err != nil {
		return nil, err
	}
	return fsys.Lock(filepath.Join(dir, manifest.LockName), mode)
}
