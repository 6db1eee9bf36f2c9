package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
)

// ErrMoved is matched when the name of an open directory leads elsewhere, or nowhere.
var ErrMoved = errors.New("siftkv: the directory was moved, replaced or removed while it was open")

// A Directory is a directory of the operating system that is open: files in it are reached through it, whatever its
// name means by then. It is safe for concurrent use. A nil Directory is one that cannot be moved.
//
// It uses the system's calls relative to a directory if there are any (Unix, except illumos). Elsewhere each call first
// checks whether the name still means the directory, and fails with ErrMoved if not. On Windows a directory that is
// open cannot be moved.
type Directory struct {
	name   string // full
	prefix string // of the names of files in it
	f      *os.File
	outer  *Directory // another that the file system has open, or nil
	refs   atomic.Int32
	closed atomic.Bool
}

// A DirectoryOpener is a file system whose directories can be open.
type DirectoryOpener interface {
	// OpenDirectory opens a directory. The file system that it returns is the receiver, except for names that begin
	// with dir, an absolute path: their files are those of the directory, until it is closed.
	OpenDirectory(dir string) (FS, *Directory, error)
}

// OpenDirectory opens a directory of a file system, if that is a DirectoryOpener. Otherwise it returns the file system,
// and a nil Directory.
func OpenDirectory(fsys FS, dir string) (FS, *Directory, error) {
	if o, ok := fsys.(DirectoryOpener); ok {
		return o.OpenDirectory(dir)
	}
	return fsys, nil, nil
}

// Absolute returns the name by which a directory is opened, which does not depend on where the process is: its full
// name, if the file system is a DirectoryOpener. It is cleaned, as names of files in it are (filepath.Join). An empty
// name stays empty.
func Absolute(fsys FS, dir string) (string, error) {
	if r, ok := fsys.(interface{ relieves() FS }); ok {
		fsys = r.relieves()
	}
	if _, ok := fsys.(DirectoryOpener); !ok || dir == "" {
		return dir, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%s: the directory of the process is unknown: %w", dir, err)
	}
	return abs, nil
}

// OpenDirectory implements DirectoryOpener. A directory in one that is open is opened there.
func (o osFS) OpenDirectory(dir string) (FS, *Directory, error) {
	dir = filepath.Clean(dir)
	outer, rel := o.open.in(dir)
	f, err := outer.openDirectory(rel)
	if err != nil {
		return nil, nil, err
	}
	d := &Directory{name: dir, prefix: dir, f: f, outer: o.open}
	d.refs.Store(1)
	if !os.IsPathSeparator(dir[len(dir)-1]) {
		d.prefix += string(filepath.Separator)
	}
	o.open = d
	return o, d, nil
}

// Check returns an error that matches ErrMoved if the directory's name does not lead to it any more. If nothing has
// that name, the error matches fs.ErrNotExist too. A name that this process may not look up is no error.
func (d *Directory) Check() error {
	if d == nil {
		return nil
	}
	named, err := os.Stat(d.name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %w", ErrMoved, err)
	}
	if err != nil {
		return nil //nolint:nilerr // the directory may be where it was
	}
	// Asked again each time: some file systems give a directory another number in time.
	open, err := d.f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(named, open) {
		return fmt.Errorf("%w: %s is another one now", ErrMoved, d.name)
	}
	return nil
}

// Close closes the directory, once no file needs it to be opened again (see ReadLimit). Files that were opened in it
// stay open.
func (d *Directory) Close() error {
	switch {
	case d == nil:
		return nil
	case d.closed.Swap(true):
		return &fs.PathError{Op: "close", Path: d.name, Err: fs.ErrClosed}
	}
	return d.drop()
}

// drop releases a reference.
func (d *Directory) drop() error {
	if d.refs.Add(-1) > 0 {
		return nil
	}
	return d.f.Close()
}

// A holder is a file system that may have a directory open.
type holder interface {
	hold(name string) (release func() error)
}

// hold keeps the directory open that has a file, if a file system has it open, until release is called.
func hold(fsys FS, name string) (release func() error) {
	if h, ok := fsys.(holder); ok {
		return h.hold(name)
	}
	return func() error { return nil }
}

func (o osFS) hold(name string) (release func() error) {
	d, _ := o.open.in(name)
	if d == nil {
		return func() error { return nil }
	}
	d.refs.Add(1)
	return d.drop
}

// in returns the open directory that has a file, and the file's name in it; nil if none does, and then the name as it
// is.
func (d *Directory) in(name string) (*Directory, string) {
	for ; d != nil; d = d.outer {
		if rel, ok := strings.CutPrefix(name, d.prefix); ok && rel != "" {
			return d, rel
		}
		if name == d.name {
			return d, "."
		}
	}
	return nil, name
}

// path returns the name of a file in the directory, for errors.
func (d *Directory) path(rel string) string {
	switch {
	case d == nil:
		return rel
	case rel == ".":
		return d.name
	}
	return d.prefix + rel
}

func (d *Directory) list(rel string) ([]string, error) {
	f, err := d.openDirectory(rel)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, f.Close())
}

// mkdirAll makes a directory in this one, and those on the way to it.
func (d *Directory) mkdirAll(rel string, perm fs.FileMode) error {
	for i := 1; i <= len(rel) && rel != "."; i++ {
		if i < len(rel) && !os.IsPathSeparator(rel[i]) {
			continue
		}
		if err := d.mkdir(rel[:i], perm); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	info, err := d.stat(rel)
	if err == nil && !info.dir {
		err = &fs.PathError{Op: "mkdir", Path: d.path(rel), Err: syscall.ENOTDIR}
	}
	return err
}

// fileInfo is what this package asks about files.
type fileInfo struct {
	size      int64
	perm      fs.FileMode
	dir, pipe bool
}

func newFileInfo(info fs.FileInfo) fileInfo {
	return fileInfo{size: info.Size(), perm: info.Mode().Perm(), dir: info.IsDir(),
		pipe: info.Mode()&fs.ModeNamedPipe != 0}
}
