package vfs

import (
	"errors"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// A ReadLimit bounds how many files are open for reading. A file beyond the bound is
// opened in place of one that has not been read for long, which is opened again when it is
// read next: its name must stay what it is until it is closed. The bound is exceeded only
// by files that are being read at the same time.
//
// A read of an open file takes a lock for readers, which no other file has. It is safe for
// concurrent use.
type ReadLimit struct {
	most int

	mu   sync.Mutex
	ring []*limitedFile // those that are open, or being opened
	hand int            // of the clock that goes round it
}

// NewReadLimit returns a bound of most files, which is at least 1.
func NewReadLimit(most int) *ReadLimit { return &ReadLimit{most: max(most, 1)} }

// Open opens a file under the bound. The result is a Mapper.
func (l *ReadLimit) Open(fsys FS, name string) (ReadFile, error) {
	f := &limitedFile{limit: l, fs: fsys, name: name}
	if err := f.reopen(); err != nil {
		return nil, err
	}
	return f, nil
}

// Used returns how many files are open.
func (l *ReadLimit) Used() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ring)
}

// add counts a file that is about to be opened, whose lock the caller holds, and makes
// room for it.
func (l *ReadLimit) add(f *limitedFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.ring) >= l.most && l.evict() {
	}
	l.ring = append(l.ring, f)
}

// evictOne closes some file, and reports whether there was one.
func (l *ReadLimit) evictOne() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.evict()
}

// evict closes a file that was not read since the clock's hand came by, and reports whether
// there was one that is not being read. The caller holds mu.
func (l *ReadLimit) evict() bool {
	for range 2 * len(l.ring) {
		l.hand = (l.hand + 1) % len(l.ring)
		f := l.ring[l.hand]
		if f.used.Swap(false) || !f.mu.TryLock() {
			continue
		}
		// What is only read has nothing to lose when its closing fails.
		_ = f.file.Close()
		f.file = nil
		f.mu.Unlock()
		l.ring = slices.Delete(l.ring, l.hand, l.hand+1)
		return true
	}
	return false
}

// remove takes a file out that is open no more.
func (l *ReadLimit) remove(f *limitedFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.ring, f); i >= 0 {
		l.ring = slices.Delete(l.ring, i, i+1)
	}
}

// A limitedFile is a file that may be closed between two reads.
type limitedFile struct {
	limit *ReadLimit
	fs    FS
	name  string
	used  atomic.Bool // since the clock's hand came by

	mu     sync.RWMutex // held for reading while file is read
	file   ReadFile     // nil: closed
	closed bool         // for good
}

// acquire returns the file, open, with the lock held for reading.
func (f *limitedFile) acquire() (ReadFile, error) {
	for {
		f.mu.RLock()
		if f.file != nil {
			if !f.used.Load() { // mostly it is: readers then share the cache line
				f.used.Store(true)
			}
			return f.file, nil
		}
		f.mu.RUnlock()
		if err := f.reopen(); err != nil {
			return nil, err
		}
	}
}

// reopen opens the file, if it is not. If the process has too many open, one that is under
// the same bound makes room.
func (f *limitedFile) reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "open", Path: f.name, Err: fs.ErrClosed}
	}
	if f.file != nil {
		return nil
	}
	f.limit.add(f)
	file, err := f.fs.Open(f.name)
	if err != nil && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && f.limit.evictOne() {
		file, err = f.fs.Open(f.name)
	}
	if err != nil {
		f.limit.remove(f)
		return err
	}
	f.file = file
	f.used.Store(true)
	return nil
}

// ReadAt implements io.ReaderAt.
func (f *limitedFile) ReadAt(p []byte, off int64) (int, error) {
	file, err := f.acquire()
	if err != nil {
		return 0, err
	}
	defer f.mu.RUnlock()
	return file.ReadAt(p, off)
}

// Size implements ReadFile.
func (f *limitedFile) Size() (int64, error) {
	file, err := f.acquire()
	if err != nil {
		return 0, err
	}
	defer f.mu.RUnlock()
	return file.Size()
}

// Map implements Mapper. The memory needs no open file.
func (f *limitedFile) Map(size int64) (data []byte, unmap func() error, err error) {
	file, err := f.acquire()
	if err != nil {
		return nil, nil, err
	}
	defer f.mu.RUnlock()
	m, ok := file.(Mapper)
	if !ok {
		return nil, nil, errors.ErrUnsupported
	}
	return m.Map(size)
}

// Close implements ReadFile.
func (f *limitedFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	if f.file == nil {
		return nil
	}
	f.limit.remove(f)
	err := f.file.Close()
	f.file = nil
	return err
}
