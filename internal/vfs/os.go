package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// DefaultMode is the mode of files that OS makes: they are for their owner alone.
const DefaultMode fs.FileMode = 0o600

// OS is the operating system's file system. Errors are those of package os, which name the operation and the path.
var OS = OSWithMode(DefaultMode)

// OSWithMode is OS with the mode of files that are made, before the umask. Directories have x where
// it has r. Existing files keep their mode.
func OSWithMode(mode fs.FileMode) FS {
	const r, toX = 0o444, 2
	return osFS{file: mode, dir: mode | mode&r>>toX}
}

type osFS struct {
	file, dir fs.FileMode
	open      *Directory // the last directory that was opened, or nil
}

func (o osFS) openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	d, rel := o.open.in(name)
	if d == nil {
		return os.OpenFile(name, flag, perm)
	}
	return d.openFile(rel, flag, perm)
}

func (o osFS) stat(name string) (fileInfo, error) {
	if d, rel := o.open.in(name); d != nil {
		return d.stat(rel)
	}
	info, err := os.Stat(name)
	if err != nil {
		return fileInfo{}, err
	}
	return newFileInfo(info), nil
}

// Create implements FS. It first removes what is left of a file of ReplaceFile: the replacement must have the wanted
// mode, and must not be written through a link.
func (o osFS) Create(name string) (WriteFile, error) {
	if strings.HasSuffix(name, TempSuffix) {
		_ = o.Remove(name) // else it is written over
	}
	f, err := o.openFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, o.file)
	if err != nil {
		return nil, err
	}
	return osWriteFile{f}, nil
}

// errPipe is the error of reading a pipe as if it were a file.
var errPipe = errors.New("it is a pipe, and no file")

// refusePipe returns an error if a file is a pipe: to open it would block until it has a writer.
func (o osFS) refusePipe(name string) error {
	if info, err := o.stat(name); err == nil && info.pipe {
		return &fs.PathError{Op: "open", Path: name, Err: errPipe}
	}
	return nil
}

// Open implements FS. A pipe is an error.
func (o osFS) Open(name string) (ReadFile, error) {
	if err := o.refusePipe(name); err != nil {
		return nil, err
	}
	f, err := o.openFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return newReadFile(f), nil
}

func (o osFS) Remove(name string) error {
	if d, rel := o.open.in(name); d != nil {
		return d.remove(rel)
	}
	return os.Remove(name)
}

func (o osFS) Rename(oldname, newname string) error {
	from, oldRel := o.open.in(oldname)
	to, newRel := o.open.in(newname)
	return rename(from, oldRel, to, newRel)
}

func (o osFS) Link(oldname, newname string) error {
	from, oldRel := o.open.in(oldname)
	to, newRel := o.open.in(newname)
	return link(from, oldRel, to, newRel)
}

func (o osFS) MkdirAll(dir string) error {
	if d, rel := o.open.in(dir); d != nil {
		return d.mkdirAll(rel, o.dir)
	}
	return os.MkdirAll(dir, o.dir)
}

func (o osFS) SyncDir(dir string) error {
	if d, rel := o.open.in(dir); d != nil {
		return d.sync(rel)
	}
	return syncDir(dir)
}

// SyncFile implements FileSyncer. It needs the permission to write, which some platforms require to sync.
func (o osFS) SyncFile(name string) error {
	f, err := o.openFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(syncFile(f), f.Close())
}

func (o osFS) List(dir string) ([]string, error) {
	d, rel := o.open.in(dir)
	return d.list(rel)
}

func (o osFS) Stat(name string) (int64, error) {
	info, err := o.stat(name)
	return info.size, err
}

func (o osFS) Lock(name string, mode LockMode) (io.Closer, error) { return o.lockFile(name, mode) }

type osWriteFile struct{ f *os.File }

func (w osWriteFile) Write(p []byte) (int, error) { return w.f.Write(p) }
func (w osWriteFile) Sync() error                 { return syncFile(w.f) }
func (w osWriteFile) Close() error                { return w.f.Close() }

func (r *osReadFile) ReadAt(p []byte, off int64) (int, error) { return r.f.ReadAt(p, off) }

func (r *osReadFile) Size() (int64, error) {
	info, err := r.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
