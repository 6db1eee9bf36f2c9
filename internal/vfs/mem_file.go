package vfs

import (
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
)

// A memNode is what a name of Mem leads to. Names and open files share it, so content
// that is open outlives its last name.
type memNode struct {
	isDir bool

	mu   sync.RWMutex // guards data
	data []byte

	holders   int  // of its lock; guarded by Mem.mu
	exclusive bool // the lock's one holder is exclusive
}

func (n *memNode) size() int64 {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return int64(len(n.data))
}

func (n *memNode) truncate() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.data = nil
}

func (n *memNode) readAt(p []byte, off int64) (int, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if len(p) == 0 {
		return 0, nil
	}
	if off >= int64(len(n.data)) {
		return 0, io.EOF
	}
	c := copy(p, n.data[off:])
	if c < len(p) {
		return c, io.EOF
	}
	return c, nil
}

// writeAt writes p at off, with zeros before it if the file is shorter.
func (n *memNode) writeAt(p []byte, off int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if end := off + len(p); end > len(n.data) {
		old := len(n.data)
		n.data = slices.Grow(n.data, end-old)[:end]
		clear(n.data[min(old, off):off])
	}
	copy(n.data[off:], p)
}

// A memHandle is what is open of a node: it can be closed once.
type memHandle struct {
	name   string
	node   *memNode
	closed atomic.Bool
}

// check returns an error for an operation on a closed handle.
func (h *memHandle) check(op string) error {
	if h.closed.Load() {
		return &fs.PathError{Op: op, Path: h.name, Err: fs.ErrClosed}
	}
	return nil
}

func (h *memHandle) Close() error {
	if h.closed.Swap(true) {
		return &fs.PathError{Op: "close", Path: h.name, Err: fs.ErrClosed}
	}
	return nil
}

type memWriteFile struct {
	memHandle
	off int
}

func (w *memWriteFile) Write(p []byte) (int, error) {
	if err := w.check("write"); err != nil {
		return 0, err
	}
	w.node.writeAt(p, w.off)
	w.off += len(p)
	return len(p), nil
}

func (w *memWriteFile) Sync() error { return w.check("sync") }

type memReadFile struct{ memHandle }

func (r *memReadFile) ReadAt(p []byte, off int64) (int, error) {
	if err := r.check("read"); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: r.name, Err: fs.ErrInvalid}
	}
	return r.node.readAt(p, off)
}

func (r *memReadFile) Size() (int64, error) {
	if err := r.check("stat"); err != nil {
		return 0, err
	}
	return r.node.size(), nil
}

// A memLock is one hold on a node's lock.
type memLock struct {
	memHandle
	fs *Mem
}

func (l *memLock) Close() error {
	if l.closed.Swap(true) {
		return fs.ErrClosed
	}
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	l.node.holders--
	l.node.exclusive = false
	return nil
}
