// Package vfstest has file systems for tests: calls fail, reads take a while, disks fill up.
package vfstest

import (
	"errors"
	"io"
	"io/fs"
	"sync"
	"syscall"

	sift "github.com/siftkv/siftkv/internal/vfs"
)

// A Call is a call of the file system.
type Call struct {
	N       int    // counts all calls
	Op      string // the method's name; of open files "read", "write", "sync", "size", "close"
	Changes bool   // the disk
	Bytes   int    // to write
}

// ErrLie makes a call return nil and do nothing, where a fault returns it. Operating systems answer so to a sync that
// follows a failed one.
var ErrLie = errors.New("the call does nothing and says nil")

// A FaultFS is a file system whose calls may fail.
type FaultFS struct {
	FS sift.FS

	mu    sync.Mutex
	Calls int
	// fault is asked before every call, one at a time. Of a write that fails, so
	// many bytes are written all the same.
	fault func(c Call) (short int, err error)
}

var _ sift.FS = (*FaultFS)(nil)

func (f *FaultFS) before(op string, changes bool, bytes int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Calls++
	if f.fault == nil {
		return 0, nil
	}
	return f.fault(Call{N: f.Calls, Op: op, Changes: changes, Bytes: bytes})
}

// Set changes what fails from now on.
func (f *FaultFS) Set(fault func(c Call) (int, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

func (f *FaultFS) do(op string, changes bool, call func() error) error {
	_, err := f.before(op, changes, 0)
	switch {
	case err == nil:
		return call()
	case errors.Is(err, ErrLie):
		return nil
	}
	return &fs.PathError{Op: op, Path: "test", Err: err}
}

// Create implements vfs.FS.
func (f *FaultFS) Create(name string) (w sift.WriteFile, err error) {
	err = f.do("create", true, func() error { w, err = f.FS.Create(name); return err })
	return &faultWriteFile{f, w, name}, err
}

// Open implements vfs.FS.
func (f *FaultFS) Open(name string) (r sift.ReadFile, err error) {
	err = f.do("open", false, func() error { r, err = f.FS.Open(name); return err })
	return &faultReadFile{f, r}, err
}

// Remove implements vfs.FS.
func (f *FaultFS) Remove(name string) error {
	return f.do("remove", true, func() error { return f.FS.Remove(name) })
}

// Rename implements vfs.FS.
func (f *FaultFS) Rename(from, to string) error {
	return f.do("rename", true, func() error { return f.FS.Rename(from, to) })
}

// Link implements vfs.FS.
func (f *FaultFS) Link(from, to string) error {
	return f.do("link", true, func() error { return f.FS.Link(from, to) })
}

// List implements vfs.FS.
func (f *FaultFS) List(dir string) (names []string, err error) {
	err = f.do("list", false, func() error { names, err = f.FS.List(dir); return err })
	return names, err
}

// MkdirAll implements vfs.FS.
func (f *FaultFS) MkdirAll(dir string) error {
	return f.do("mkdir", true, func() error { return f.FS.MkdirAll(dir) })
}

// SyncDir implements vfs.FS.
func (f *FaultFS) SyncDir(dir string) error {
	return f.do("syncdir", true, func() error { return f.FS.SyncDir(dir) })
}

// Stat implements vfs.FS.
func (f *FaultFS) Stat(name string) (size int64, err error) {
	err = f.do("stat", false, func() error { size, err = f.FS.Stat(name); return err })
	return size, err
}

// Lock implements vfs.FS.
func (f *FaultFS) Lock(name string, mode sift.LockMode) (c io.Closer, err error) {
	err = f.do("lock", true, func() error { c, err = f.FS.Lock(name, mode); return err })
	return c, err
}

type faultWriteFile struct {
	fs   *FaultFS
	f    sift.WriteFile
	name string
}

func (w *faultWriteFile) Write(p []byte) (int, error) {
	short, err := w.fs.before("write", true, len(p))
	if err == nil {
		return w.f.Write(p)
	}
	n, _ := w.f.Write(p[:min(short, len(p))])
	return n, &fs.PathError{Op: "write", Path: w.name, Err: err}
}

func (w *faultWriteFile) Sync() error {
	return w.fs.do("sync", true, w.f.Sync)
}

// Close closes the file in any case: after a failed close(2) it is closed too.
func (w *faultWriteFile) Close() error {
	err := w.f.Close()
	if _, failed := w.fs.before("close", true, 0); failed != nil {
		return failed
	}
	return err
}

type faultReadFile struct {
	fs *FaultFS
	f  sift.ReadFile
}

func (r *faultReadFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = r.fs.do("read", false, func() error { n, err = r.f.ReadAt(p, off); return err })
	return n, err
}

func (r *faultReadFile) Size() (n int64, err error) {
	err = r.fs.do("size", false, func() error { n, err = r.f.Size(); return err })
	return n, err
}

func (r *faultReadFile) Close() error {
	err := r.f.Close()
	if _, failed := r.fs.before("close", false, 0); failed != nil {
		return failed
	}
	return err
}

// Quota returns a fault that fails writes with ENOSPC after the given number of bytes. The write that exceeds it writes
// the bytes that remain. Calls that write nothing succeed.
func Quota(bytes int) func(c Call) (int, error) {
	return func(c Call) (int, error) {
		if c.Bytes > bytes {
			room := bytes
			bytes = 0
			return room, syscall.ENOSPC
		}
		bytes -= c.Bytes
		return 0, nil
	}
}
