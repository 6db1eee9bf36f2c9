package stress

import (
	"io"
	"io/fs"
	"slices"
	"sync/atomic"
)

type writeFile struct {
	s      *Session
	name   string
	n      *node
	off    int
	closed atomic.Bool
}

func (w *writeFile) Write(p []byte) (int, error) {
	if w.closed.Load() {
		return 0, &fs.PathError{Op: "write", Path: w.name, Err: fs.ErrClosed}
	}
	written := 0
	put := func(n int) {
		w.n.write(w.off, p[:n])
		w.off += n
		written = n
	}
	err := w.s.do(Call{Op: "write", Path: w.name, Changes: true, Bytes: len(p)}, func() error {
		put(len(p))
		return nil
	}, put)
	return written, err
}

func (w *writeFile) Sync() error {
	if w.closed.Load() {
		return &fs.PathError{Op: "sync", Path: w.name, Err: fs.ErrClosed}
	}
	return w.s.sync(w.name, w.n)
}

// Close closes the file in any case: after a failed close(2) it is closed too.
func (w *writeFile) Close() error {
	if w.closed.Swap(true) {
		return &fs.PathError{Op: "close", Path: w.name, Err: fs.ErrClosed}
	}
	w.s.forget(w.name)
	return w.s.do(Call{Op: "close", Path: w.name}, func() error { return nil }, nil)
}

// forget notes that a file is open no more.
func (s *Session) forget(name string) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.closed(name)
}

type readFile struct {
	s      *Session
	name   string
	n      *node
	closed atomic.Bool
}

func (r *readFile) ReadAt(p []byte, off int64) (read int, err error) {
	if r.closed.Load() {
		return 0, &fs.PathError{Op: "read", Path: r.name, Err: fs.ErrClosed}
	}
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: r.name, Err: fs.ErrInvalid}
	}
	err = r.s.do(Call{Op: "read", Path: r.name}, func() error {
		if off < int64(len(r.n.data)) {
			read = copy(p, r.n.data[off:])
		}
		return nil
	}, nil)
	if err == nil && read < len(p) {
		err = io.EOF
	}
	return read, err
}

func (r *readFile) Size() (size int64, err error) {
	err = r.s.do(Call{Op: "stat", Path: r.name}, func() error {
		size = int64(len(r.n.data))
		return nil
	}, nil)
	return size, err
}

func (r *readFile) Close() error {
	if r.closed.Swap(true) {
		return &fs.PathError{Op: "close", Path: r.name, Err: fs.ErrClosed}
	}
	r.s.forget(r.name)
	return nil
}

// A lock is one hold on a file's lock.
type lock struct {
	s      *Session
	name   string
	n      *node
	closed atomic.Bool
}

func (l *lock) Close() error {
	if l.closed.Swap(true) {
		return fs.ErrClosed
	}
	l.s.disk.mu.Lock()
	defer l.s.disk.mu.Unlock()
	if l.s.dead {
		return nil // the lock went with the process
	}
	l.s.closed(l.name)
	l.n.unlock()
	i := slices.Index(l.s.locked, l.n)
	l.s.locked = slices.Delete(l.s.locked, i, i+1)
	return nil
}
