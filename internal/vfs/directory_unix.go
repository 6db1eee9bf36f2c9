//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package vfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// with calls a function with the descriptor of a directory, which stays open meanwhile. With that of a nil Directory,
// names are those of the process.
func (d *Directory) with(call func(fd int) error) error {
	if d == nil {
		return call(unix.AT_FDCWD)
	}
	conn, err := d.f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := conn.Control(func(fd uintptr) { result = call(int(fd)) }); err != nil {
		return fs.ErrClosed
	}
	return result
}

// at makes a system call about a file in the directory.
func (d *Directory) at(op, rel string, call func(fd int) error) error {
	err := d.with(func(fd int) error { return uninterrupted(func() error { return call(fd) }) })
	return pathError(op, d.path(rel), err)
}

// uninterrupted repeats a system call as long as a signal interrupts it.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (d *Directory) openFile(rel string, flag int, perm fs.FileMode) (*os.File, error) {
	var file int
	err := d.at("open", rel, func(fd int) (err error) {
		file, err = unix.Openat(fd, rel, flag|unix.O_CLOEXEC, uint32(perm.Perm()))
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(file), d.path(rel)), nil
}

// openDirectory opens a directory, and nothing else: to open a pipe may block.
func (d *Directory) openDirectory(rel string) (*os.File, error) {
	return d.openFile(rel, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

func (d *Directory) stat(rel string) (fileInfo, error) {
	var st unix.Stat_t
	err := d.at("stat", rel, func(fd int) error { return unix.Fstatat(fd, rel, &st, 0) })
	kind := uint32(st.Mode) & unix.S_IFMT //nolint:unconvert // 16 bits on macOS
	return fileInfo{size: st.Size, perm: fs.FileMode(st.Mode) & fs.ModePerm, dir: kind == unix.S_IFDIR,
		pipe: kind == unix.S_IFIFO}, err
}

func (d *Directory) remove(rel string) error {
	if rel == "." {
		if err := d.Check(); err != nil {
			return err
		}
		return os.Remove(d.name)
	}
	err := d.at("remove", rel, func(fd int) error { return unix.Unlinkat(fd, rel, 0) })
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dirErr := d.at("remove", rel, func(fd int) error { return unix.Unlinkat(fd, rel, unix.AT_REMOVEDIR) })
	if dirErr == nil || !errors.Is(dirErr, unix.ENOTDIR) {
		return dirErr
	}
	return err
}

func (d *Directory) mkdir(rel string, perm fs.FileMode) error {
	return d.at("mkdir", rel, func(fd int) error { return unix.Mkdirat(fd, rel, uint32(perm.Perm())) })
}

func (d *Directory) sync(rel string) error {
	if rel == "." {
		return d.f.Sync()
	}
	f, err := d.openFile(rel, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// between makes a system call about two files in directories, each of which may be nil.
func between(op string, from *Directory, oldRel string, to *Directory, newRel string,
	call func(from, to int) error) error {
	err := from.with(func(a int) error {
		return to.with(func(b int) error { return uninterrupted(func() error { return call(a, b) }) })
	})
	if err != nil {
		return &os.LinkError{Op: op, Old: from.path(oldRel), New: to.path(newRel), Err: err}
	}
	return nil
}

func rename(from *Directory, oldRel string, to *Directory, newRel string) error {
	if info, err := to.stat(newRel); err == nil && info.dir {
		return &os.LinkError{Op: "rename", Old: from.path(oldRel), New: to.path(newRel), Err: unix.EEXIST}
	}
	return between("rename", from, oldRel, to, newRel, func(a, b int) error {
		return unix.Renameat(a, oldRel, b, newRel)
	})
}

func link(from *Directory, oldRel string, to *Directory, newRel string) error {
	return between("link", from, oldRel, to, newRel, func(a, b int) error {
		return unix.Linkat(a, oldRel, b, newRel, unix.AT_SYMLINK_FOLLOW)
	})
}
