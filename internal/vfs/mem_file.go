package vfs

import (
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
)

// A memNode is what a name of Mem leads to. Names and open files share it, so
// that content outlives its last name for those who have it open.
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

type memWriteFile struct {
	name   string
	node   *memNode
	off    int
	closed atomic.Bool
}

func (w *memWriteFile) Write(p []byte) (int, error) {
	if w.closed.Load() {
		return 0, &fs.PathError{Op: "write", Path: w.name, Err: fs.ErrClosed}
	}
	w.node.writeAt(p, w.off)
	w.off += len(p)
	return len(p), nil
}

func (w *memWriteFile) Sync() error {
	if w.closed.Load() {
		return &fs.PathError{Op: "sync", Path: w.name, Err: fs.ErrClosed}
	}
	return nil
}

func (w *memWriteFile) Close() error {
	if w.closed.Swap(true) {
		return &fs.PathError{Op: "close", Path: w.name, Err: fs.ErrClosed}
	}
	return nil
}

type memReadFile struct {
	name   string
	node   *memNode
	closed atomic.Bool
}

func (r *memReadFile) ReadAt(p []byte, off int64) (int, error) {
	if r.closed.Load() {
		return 0, &fs.PathError{Op: "read", Path: r.name, Err: fs.ErrClosed}
	}
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: r.name, Err: fs.ErrInvalid}
	}
	return r.node.readAt(p, off)
}

func (r *memReadFile) Size() (int64, error) {
	if r.closed.Load() {
		return 0, &fs.PathError{Op: "stat", Path: r.name, Err: fs.ErrClosed}
	}
	return r.node.size(), nil
}

func (r *memReadFile) Close() error {
	if r.closed.Swap(true) {
		return &fs.PathError{Op: "close", Path: r.name, Err: fs.ErrClosed}
	}
	return nil
}

// A memLock is one hold on a node's lock.
type memLock struct {
	fs     *Mem
	node   *memNode
	closed atomic.Bool
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
