package siftraft

import (
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A disk is files in memory, of which a power cut leaves what was synced, and of the rest what chance wants. Before
// every call that changes something it calls before, whose error is that of the call. Directories are there when they
// are named.
type disk struct {
	before func(call string) error
	// Reads are asked too, if it is there.
	reading func() error

	mu      sync.Mutex
	names   map[string]*inode
	durable map[string]*inode // the names as of the last sync of their directory
}

// An inode is a file.
type inode struct{ data, synced []byte }

var _ vfs.FS = (*disk)(nil)

func newDisk() *disk {
	return &disk{before: func(string) error { return nil }, names: map[string]*inode{}, durable: map[string]*inode{}}
}

// cut returns the disk as it is after a power cut at this moment.
func (d *disk) cut(rng *rand.Rand) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := newDisk()
	left := maps.Clone(d.durable)
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if rng.IntN(2) == 0 {
			left[name] = d.names[name]
		}
	}
	copies := map[*inode]*inode{}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		from := left[name]
		if copies[from] == nil {
			content := from.synced
			if rng.IntN(2) == 0 && len(from.data) > len(content) {
				content = from.data[:len(content)+rng.IntN(len(from.data)-len(content)+1)]
			}
			copies[from] = &inode{slices.Clone(content), slices.Clone(content)}
		}
		after.names[name], after.durable[name] = copies[from], copies[from]
	}
	return after
}

// change makes a change, unless before fails.
func (d *disk) change(call string, f func() error) error {
	if err := d.before(call); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return f()
}

func (d *disk) Create(name string) (vfs.WriteFile, error) {
	f := &diskFile{d: d}
	return f, d.change("create", func() error {
		if d.names[name] == nil {
			d.names[name] = &inode{}
		}
		f.inode = d.names[name]
		f.inode.data = nil
		return nil
	})
}

func (d *disk) Open(name string) (vfs.ReadFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &diskFile{d, d.names[name]}, nil
}

func (d *disk) Remove(name string) error {
	return d.change("remove", func() error {
		if d.names[name] == nil {
			return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
		}
		delete(d.names, name)
		return nil
	})
}

func (d *disk) Rename(oldname, newname string) error {
	return d.change("rename", func() error {
		if d.names[oldname] == nil {
			return &fs.PathError{Op: "rename", Path: oldname, Err: fs.ErrNotExist}
		}
		d.names[newname] = d.names[oldname]
		delete(d.names, oldname)
		return nil
	})
}

func (d *disk) Link(oldname, newname string) error {
	return d.change("link", func() error {
		if d.names[oldname] == nil || d.names[newname] != nil {
			return &fs.PathError{Op: "link", Path: newname, Err: fs.ErrInvalid}
		}
		d.names[newname] = d.names[oldname]
		return nil
	})
}

func (d *disk) List(dir string) (all []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.names {
		if filepath.Dir(name) == filepath.Clean(dir) {
			all = append(all, filepath.Base(name))
		}
	}
	slices.Sort(all)
	return all, nil
}

func (d *disk) MkdirAll(string) error { return nil }

func (d *disk) SyncDir(dir string) error {
	return d.change("sync a directory", func() error {
		inDir := func(name string, _ *inode) bool { return filepath.Dir(name) == filepath.Clean(dir) }
		maps.DeleteFunc(d.durable, inDir)
		for name, n := range d.names {
			if inDir(name, n) {
				d.durable[name] = n
			}
		}
		return nil
	})
}

func (d *disk) Stat(name string) (int64, error) {
	f, err := d.Open(name)
	if err != nil {
		return 0, err
	}
	return f.Size()
}

func (d *disk) Lock(name string, _ vfs.LockMode) (io.Closer, error) { return d.Create(name) }

// A diskFile is an open file, which is read at random and written at its end.
type diskFile struct {
	d     *disk
	inode *inode
}

func (f *diskFile) Write(b []byte) (int, error) {
	return len(b), f.d.change("write", func() error {
		f.inode.data = append(f.inode.data, b...)
		return nil
	})
}

func (f *diskFile) Sync() error {
	return f.d.change("sync", func() error {
		f.inode.synced = slices.Clone(f.inode.data)
		return nil
	})
}

func (f *diskFile) ReadAt(p []byte, off int64) (int, error) {
	if f.d.reading != nil {
		if err := f.d.reading(); err != nil {
			return 0, err
		}
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if off >= int64(len(f.inode.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.inode.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *diskFile) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return int64(len(f.inode.data)), nil
}

func (f *diskFile) Close() error { return nil }
