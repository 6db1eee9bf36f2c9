package kv

import (
	"errors"
	"io/fs"
	"strings"
	"sync"
	"syscall"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A boundedFS is a file system in memory of some bytes, which files take from the moment when they are written until
// they are removed. No file may have two names.
type boundedFS struct {
	vfs.FS

	mu     sync.Mutex
	size   int64 // 0: no bound
	files  map[string]*boundedFile
	used   int64
	silent bool   // it does not say what is free
	denied string // files with this in their names get no room; empty: all do
	peak   int64  // the most that was used since it was last set
	full   int    // writes that found no room
}

type boundedFile struct {
	vfs.WriteFile
	fs   *boundedFS
	name string
	size int64
	gone bool
}

func newBoundedFS(size int64) *boundedFS {
	return &boundedFS{FS: vfs.NewMem(), size: size, files: map[string]*boundedFile{}}
}

// free gives the room back that a file takes. The caller holds mu.
func (b *boundedFS) free(name string) {
	if f := b.files[name]; f != nil {
		f.gone = true
		b.used -= f.size
		delete(b.files, name)
	}
}

func (b *boundedFS) Create(name string) (vfs.WriteFile, error) {
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

func (b *boundedFS) Remove(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.FS.Remove(name)
	if err == nil {
		b.free(name)
	}
	return err
}

func (b *boundedFS) Rename(from, to string) error {
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
func (b *boundedFS) SyncFile(name string) error { return b.FS.(vfs.FileSyncer).SyncFile(name) }

// FreeSpace implements vfs.FreeSpacer.
func (b *boundedFS) FreeSpace(string) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size == 0 || b.silent {
		return 0, errors.ErrUnsupported
	}
	return b.size - b.used, nil
}

// bound sets how many bytes there are.
func (b *boundedFS) bound(size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size = size
}

// deny keeps files with this in their names from growing; if it is empty, all may.
func (b *boundedFS) deny(name string) {
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
		b.full++
		err = &fs.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
	}
	return n, err
}

// measure forgets the peak, and returns what is used now.
func (b *boundedFS) measure() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.peak = b.used
	return b.used
}

// most returns the peak.
func (b *boundedFS) most() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peak
}
