package vfstest

import (
	"errors"
	"io/fs"
	"strings"
	"sync"
	"syscall"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A BoundedFS is a file system in memory of some bytes, which files take from the moment when they are written until
// they are removed. No file may have two names.
type BoundedFS struct {
	vfs.FS

	mu     sync.Mutex
	size   int64 // 0: no bound
	files  map[string]*boundedFile
	used   int64
	Silent bool   // it does not say what is free
	denied string // files with this in their names get no room; empty: all do
	peak   int64  // the most that was used since it was last set
	Full   int    // writes that found no room
}

type boundedFile struct {
	vfs.WriteFile
	fs   *BoundedFS
	name string
	size int64
	gone bool
}

// NewBoundedFS returns an empty file system in memory with room for size bytes; 0 means no bound.
func NewBoundedFS(size int64) *BoundedFS {
	return &BoundedFS{FS: vfs.NewMem(), size: size, files: map[string]*boundedFile{}}
}

// free gives the room back that a file takes. The caller holds mu.
func (b *BoundedFS) free(name string) {
	if f := b.files[name]; f != nil {
		f.gone = true
		b.used -= f.size
		delete(b.files, name)
	}
}

// Create implements vfs.FS.
func (b *BoundedFS) Create(name string) (vfs.WriteFile, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, err := b.FS.Create(name)
	if err != nil {
		return nil, err
	}
	b.free(name)
	f := &boundedFile{WriteFile: w, fs: b, name: name}
	b.files[name] = f
	return f, nil
}

// Remove implements vfs.FS.
func (b *BoundedFS) Remove(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.FS.Remove(name)
	if err == nil {
		b.free(name)
	}
	return err
}

// Rename implements vfs.FS.
func (b *BoundedFS) Rename(from, to string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.FS.Rename(from, to)
	if f := b.files[from]; err == nil && from != to {
		b.free(to)
		b.files[to] = f
		delete(b.files, from)
	}
	return err
}

// SyncFile implements vfs.FileSyncer.
func (b *BoundedFS) SyncFile(name string) error { return b.FS.(vfs.FileSyncer).SyncFile(name) }

// FreeSpace implements vfs.FreeSpacer.
func (b *BoundedFS) FreeSpace(string) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size == 0 || b.Silent {
		return 0, errors.ErrUnsupported
	}
	return b.size - b.used, nil
}

// Bound sets how many bytes there are.
func (b *BoundedFS) Bound(size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size = size
}

// Deny keeps files with this in their names from growing; if it is empty, all may.
func (b *BoundedFS) Deny(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denied = name
}

// Write takes what there is room for.
func (f *boundedFile) Write(p []byte) (n int, err error) {
	b := f.fs
	b.mu.Lock()
	defer b.mu.Unlock()
	room := len(p)
	if b.size > 0 && !f.gone {
		room = int(max(min(int64(room), b.size-b.used), 0))
	}
	if b.denied != "" && strings.Contains(f.name, b.denied) {
		room = 0
	}
	n, err = f.WriteFile.Write(p[:room])
	if !f.gone {
		f.size += int64(n)
		b.used += int64(n)
		b.peak = max(b.peak, b.used)
	}
	if err == nil && n < len(p) {
		b.Full++
		err = &fs.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
	}
	return n, err
}

// ResetPeak sets the peak to what is used now, and returns it.
func (b *BoundedFS) ResetPeak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.peak = b.used
	return b.used
}

// Peak returns the maximum that was used since ResetPeak.
func (b *BoundedFS) Peak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peak
}
