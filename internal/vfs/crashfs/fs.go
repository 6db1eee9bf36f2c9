package crashfs

import (
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/vfs"
)

// An FS is a disk as a store sees it. It calls a function before every call that changes something, which may cut the
// power or fail the call.
type FS struct {
	Disk *Disk

	mu     sync.Mutex // held while before runs
	before func() error
}

var (
	_ vfs.FS         = (*FS)(nil)
	_ vfs.FileSyncer = (*FS)(nil)
)

// New returns a view of a disk that calls before, one call at a time.
func New(disk *Disk, before func() error) *FS { return &FS{Disk: disk, before: before} }

// change calls before, and then a function that changes the disk.
func (f *FS) change(op, name string, change func() error) error {
	if err := f.ask(); err != nil {
		return err
	}
	f.Disk.mu.Lock()
	defer f.Disk.mu.Unlock()
	return pathError(op, name, change())
}

func (f *FS) ask() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.before()
}

// Create implements [vfs.FS].
func (f *FS) Create(name string) (vfs.WriteFile, error) {
	w := &writeFile{fs: f}
	err := f.change("create", name, func() (err error) {
		if w.node, err = f.make(name); err == nil {
			w.node.data, w.node.truncated = nil, true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// make returns the file of a name, a new one if there was none.
func (f *FS) make(name string) (*node, error) {
	dir, base, err := f.Disk.parent(name)
	if err != nil {
		return nil, err
	}
	n := dir.names[base]
	switch {
	case n == nil:
		n = &node{}
		dir.names[base] = n
	case n.isDir():
		return nil, errIsDir
	}
	return n, nil
}

// Open implements [vfs.FS].
func (f *FS) Open(name string) (vfs.ReadFile, error) {
	f.Disk.mu.RLock()
	defer f.Disk.mu.RUnlock()
	n, err := f.Disk.file(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &readFile{disk: f.Disk, node: n}, nil
}

// Remove implements [vfs.FS].
func (f *FS) Remove(name string) error {
	return f.change("remove", name, func() error {
		dir, base, err := f.Disk.parent(name)
		if err != nil {
			return err
		}
		n := dir.names[base]
		switch {
		case n == nil:
			return fs.ErrNotExist
		case len(n.names) > 0:
			return errNotEmpty
		}
		delete(dir.names, base)
		return nil
	})
}

// Rename implements [vfs.FS].
func (f *FS) Rename(oldname, newname string) error {
	return f.change("rename", newname, func() error {
		from, was, err := f.Disk.parent(oldname)
		if err != nil {
			return err
		}
		to, becomes, err := f.Disk.parent(newname)
		if err != nil {
			return err
		}
		n := from.names[was]
		switch old := to.names[becomes]; {
		case n == nil:
			return fs.ErrNotExist
		case old != nil && old != n && (old.isDir() || n.isDir()):
			return fs.ErrExist
		}
		delete(from.names, was)
		to.names[becomes] = n
		return nil
	})
}

// Link implements [vfs.FS].
func (f *FS) Link(oldname, newname string) error {
	if err := f.ask(); err != nil {
		return err
	}
	f.Disk.mu.Lock()
	defer f.Disk.mu.Unlock()
	n, err := f.Disk.file(oldname)
	if err == nil {
		var dir *node
		var base string
		if dir, base, err = f.Disk.parent(newname); err == nil {
			if dir.names[base] == nil {
				dir.names[base] = n
				return nil
			}
			err = fs.ErrExist
		}
	}
	return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: err}
}

// List implements [vfs.FS].
func (f *FS) List(dir string) ([]string, error) {
	f.Disk.mu.RLock()
	defer f.Disk.mu.RUnlock()
	n, err := f.Disk.dir(dir)
	if err != nil {
		return nil, pathError("list", dir, err)
	}
	return sortedNames(n.names), nil
}

// MkdirAll implements [vfs.FS].
func (f *FS) MkdirAll(dir string) error {
	return f.change("mkdir", dir, func() error {
		n := f.Disk.root
		for _, part := range parts(dir) {
			if part == "." {
				continue
			}
			if n.names[part] == nil {
				n.names[part] = newDir()
			}
			if n = n.names[part]; !n.isDir() {
				return errNotDir
			}
		}
		return nil
	})
}

// SyncDir implements [vfs.FS].
func (f *FS) SyncDir(dir string) error {
	return f.change("sync", dir, func() error {
		n, err := f.Disk.dir(dir)
		if err == nil {
			n.sync()
		}
		return err
	})
}

// SyncFile implements [vfs.FileSyncer].
func (f *FS) SyncFile(name string) error {
	return f.change("sync", name, func() error {
		n, err := f.Disk.file(name)
		if err == nil {
			n.sync()
		}
		return err
	})
}

// Stat implements [vfs.FS].
func (f *FS) Stat(name string) (int64, error) {
	f.Disk.mu.RLock()
	defer f.Disk.mu.RUnlock()
	n, err := f.Disk.node(name)
	if err != nil {
		return 0, pathError("stat", name, err)
	}
	return int64(len(n.data)), nil
}

// Lock implements [vfs.FS], without a lock: a process that a power cut ended holds none, and tests open what it left.
func (f *FS) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	if mode == vfs.Existing {
		_, err := f.Stat(name)
		return io.NopCloser(nil), err
	}
	err := f.change("lock", name, func() error {
		_, err := f.make(name)
		return err
	})
	return io.NopCloser(nil), err
}

// A handle is an open file. Use after Close panics: a real file may be another's by then.
type handle struct{ closed atomic.Bool }

func (h *handle) use() {
	if h.closed.Load() {
		panic("crashfs: a file is used after it was closed")
	}
}

func (h *handle) Close() error {
	if h.closed.Swap(true) {
		panic("crashfs: a file is closed twice")
	}
	return nil
}

// A writeFile is written from front to back.
type writeFile struct {
	handle
	fs   *FS
	node *node
	off  int
}

// Write writes half of the bytes if the call fails.
func (w *writeFile) Write(p []byte) (int, error) {
	w.use()
	err := w.fs.ask()
	if err != nil {
		p = p[:len(p)/2]
	}
	w.fs.Disk.mu.Lock()
	defer w.fs.Disk.mu.Unlock()
	n := w.node
	if grow := w.off + len(p) - len(n.data); grow > 0 {
		n.data = append(n.data, make([]byte, grow)...)
	}
	w.off += copy(n.data[w.off:], p)
	return len(p), err
}

func (w *writeFile) Sync() error {
	w.use()
	if err := w.fs.ask(); err != nil {
		return err
	}
	w.fs.Disk.mu.Lock()
	defer w.fs.Disk.mu.Unlock()
	w.node.sync()
	return nil
}

type readFile struct {
	handle
	disk *Disk
	node *node
}

func (r *readFile) ReadAt(p []byte, off int64) (int, error) {
	r.use()
	r.disk.mu.RLock()
	defer r.disk.mu.RUnlock()
	if off >= int64(len(r.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, r.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (r *readFile) Size() (int64, error) {
	r.use()
	r.disk.mu.RLock()
	defer r.disk.mu.RUnlock()
	return int64(len(r.node.data)), nil
}
