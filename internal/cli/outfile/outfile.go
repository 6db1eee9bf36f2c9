// Package outfile writes the files that a program is asked to write its results to.
//
// A file is replaced whole or not at all: what it had stays until the new contents are on the disk,
// so that a full disk costs nothing. A file that may be written to but not replaced is overwritten
// then: one that a container has mounted, or one that another user must keep. What is no regular
// file (a device, a pipe, a terminal) is written through, and stays what it is. Of a symbolic link,
// the file that it points to is written.
package outfile

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"

	"github.com/siftkv/siftkv/internal/vfs"
)

// Check returns an error if a file cannot be written: it is a directory, it may not be
// written to, or its directory is missing or takes no files. A program that computes
// for an hour asks before.
func Check(path string) error {
	t, err := find(path)
	if err != nil || t.stream {
		return err
	}
	f, err := t.temporary()
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	return named(err, path)
}

// Write makes what write writes the contents of a file. The writer is buffered. After
// an error, a regular file is as it was.
func Write(path string, write func(io.Writer) error) error {
	t, err := find(path)
	if err != nil {
		return err
	}
	if t.stream {
		return t.writeThrough(write)
	}
	f, err := t.temporary()
	if err != nil {
		return named(err, path)
	}
	err = fill(f, write)
	if err == nil {
		err = f.Sync() // some file systems find out here that they are full
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return named(err, path)
	}
	if err := t.replace(f.Name(), path); err != nil {
		return err
	}
	return SyncName(t.path)
}

// SyncName makes the name of a new file durable, unless its directory takes files and may
// not be read.
func SyncName(path string) error {
	if err := vfs.OS.SyncDir(cmp.Or(directory(path), ".")); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// A target is what a path leads to.
type target struct {
	path   string      // of the file itself, past all links; of a stream, as it was given
	stream bool        // it is written through
	old    fs.FileInfo // nil: there is no such file yet
	over   bool        // only a file of another owner could take its place
}

// find follows a path.
func find(path string) (*target, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		to, err := Target(path)
		return &target{path: to}, err
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &fs.PathError{Op: "write", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular() || standard(info) != nil:
		return &target{path: path, stream: true, old: info}, nil
	}
	// A file that could not be written to is not replaced either.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, err
	}
	to, err := Target(path)
	if err != nil {
		return nil, err
	}
	// A link of /proc leads to a file that may have another name by now, or none.
	if i, err := os.Lstat(to); err != nil || !os.SameFile(i, info) {
		return &target{path: path, stream: true, old: info}, nil //nolint:nilerr // the file itself is there
	}
	return &target{path: to, old: info}, nil
}

// directory returns the directory part of a path, with the separator. It is not cleaned:
// past a link, .. leads elsewhere.
func directory(path string) string {
	dir, _ := filepath.Split(path)
	return dir
}

// Target returns the path of the file that is written if a path is: the end of its symbolic links, there or not.
func Target(path string) (string, error) {
	const most = 40 // links, as Linux has it
	for range most {
		to, err := os.Readlink(path)
		if err != nil { // no link
			return path, nil //nolint:nilerr // and that is where the links end
		}
		if !filepath.IsAbs(to) {
			to = directory(path) + to
		}
		path = to
	}
	return "", &fs.PathError{Op: "follow", Path: path, Err: errors.New("too many symbolic links")}
}

// standard returns the standard output or error of the process if a file is that one.
// It has an offset of its own, so that another descriptor would write over what the
// process has written.
func standard(info fs.FileInfo) *os.File {
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if i, err := f.Stat(); err == nil && os.SameFile(i, info) {
			return f
		}
	}
	return nil
}

// temporary creates the file that will replace the target, in the same directory and with
// its owner and permissions.
func (t *target) temporary() (*os.File, error) {
	const tries = 100
	var f *os.File
	var err error
	for range tries {
		name := fmt.Sprintf("%s.out-%016x.tmp", directory(t.path), rand.Uint64()) //nolint:gosec // only a name
		if f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil || t.old == nil {
		return f, err
	}
	t.over = !giveTo(f, t.old)
	if err := f.Chmod(t.old.Mode().Perm()); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// replace gives the target the contents of a file next to it, and removes that. If the target can
// be neither replaced nor overwritten, the file stays, because the contents may have taken an hour.
// The error names the file, and the target as asked.
func (t *target) replace(by, asked string) error {
	var err error
	if !t.over {
		if err = os.Rename(by, t.path); err == nil {
			return nil
		}
	}
	if t.over || t.old != nil && (errors.Is(err, syscall.EBUSY) || errors.Is(err, fs.ErrPermission)) {
		if err = overwrite(t.path, by); err == nil {
			return named(os.Remove(by), asked)
		}
	}
	return fmt.Errorf("%w; what was to be written is in %s", named(err, asked), by)
}

// overwrite copies a file into another.
func overwrite(path, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	dst, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return errors.Join(err, src.Close())
	}
	_, err = io.Copy(dst, src)
	if err == nil {
		err = dst.Sync()
	}
	return errors.Join(err, dst.Close(), src.Close())
}

func (t *target) writeThrough(write func(io.Writer) error) error {
	if f := standard(t.old); f != nil {
		return fill(f, write)
	}
	f, err := os.OpenFile(t.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(fill(f, write), f.Close())
}

// fill writes through a buffer.
func fill(f *os.File, write func(io.Writer) error) error {
	b := bufio.NewWriter(f)
	if err := write(b); err != nil {
		return err
	}
	return b.Flush()
}

// named makes an error of the temporary file one of the file that was asked for.
func named(err error, path string) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: "write", Path: path, Err: p.Err}
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return &fs.PathError{Op: "write", Path: path, Err: l.Err}
	}
	return err
}
