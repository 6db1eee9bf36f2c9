package vfs

import (
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
)

// A ReadLimit bounds how many files are open for reading. To open a file beyond the bound, it closes one that has not
// been read for long, and opens that again for its next read. So a file's name must not change until it is closed. The
// bound is exceeded only by files that are being read at the same time.
//
// A read of an open file takes a read lock of that file. It is safe for concurrent use.
type ReadLimit struct {
	Explain func(err error) error // makes the error of a file that cannot be opened; nil: it stays

	bound int
	over  atomic.Bool // more files are open than most

	mu   sync.Mutex
	most int            // bound, or fewer while the process has too many files open
	ease int            // files to open before most grows by one
	ring []*limitedFile // those that are open, or being opened
	hand int            // of the clock (the CLOCK algorithm)
}

// NewReadLimit returns a bound of most files, which is at least 1.
func NewReadLimit(most int) *ReadLimit { return &ReadLimit{bound: max(most, 1), most: max(most, 1)} }

// Open opens a file under the bound. The result is a Mapper.
func (l *ReadLimit) Open(fsys FS, name string) (ReadFile, error) {
	f := &limitedFile{limit: l, fs: fsys, name: name, drop: hold(fsys, name)}
	if err := f.reopen(); err != nil {
		return nil, errors.Join(err, f.drop())
	}
	return f, nil
}

// Used returns how many files are open.
func (l *ReadLimit) Used() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ring)
}

// add counts a file that is about to be opened, and makes room for it. The caller holds the file's lock.
func (l *ReadLimit) add(f *limitedFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.ring) >= l.most && l.evict() {
	}
	if l.most < l.bound {
		if l.ease--; l.ease <= 0 {
			l.most, l.ease = l.most+1, easeAfter
		}
	}
	f.place = len(l.ring)
	l.ring = append(l.ring, f)
	l.over.Store(len(l.ring) > l.most)
}

// trim closes files until no more are open than the bound says. Files that are being read stay open.
func (l *ReadLimit) trim() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.ring) > l.most && l.evict() {
	}
	l.over.Store(len(l.ring) > l.most)
}

// When the process or the system has too many open files, the bound falls to three quarters of
// those that are open, but not below leastOpen. So other code of the program finds some free. It
// grows again by one with every easeAfter files opened.
const (
	leastOpen = 4
	easeAfter = 64
)

// giveWay closes some files, if err says that too many are open. It reports whether it did, so
// that trying again makes sense.
func (l *ReadLimit) giveWay(err error) bool {
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most, l.ease = min(l.bound, max(len(l.ring)*3/4, leastOpen)), easeAfter
	closed := l.evict()
	for closed && len(l.ring) > l.most && l.evict() {
	}
	l.over.Store(len(l.ring) > l.most)
	return closed
}

// evict closes a file that was not read since the clock's hand passed it, and reports whether there
// was one that is not being read. The caller holds mu.
func (l *ReadLimit) evict() bool {
	for range 2 * len(l.ring) {
		l.hand = (l.hand + 1) % len(l.ring)
		f := l.ring[l.hand]
		if f.used.Swap(false) || !f.mu.TryLock() {
			continue
		}
		// A file that is only read loses nothing if closing it fails.
		_ = f.file.Close()
		f.file = nil
		f.mu.Unlock()
		l.takeOut(f)
		return true
	}
	return false
}

// remove takes a file out that is open no more.
func (l *ReadLimit) remove(f *limitedFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeOut(f)
}

// takeOut puts the last file of the ring in f's place: the time does not depend on how many are open.
// The caller holds mu.
func (l *ReadLimit) takeOut(f *limitedFile) {
	last := len(l.ring) - 1
	l.ring[f.place] = l.ring[last]
	l.ring[f.place].place = f.place
	l.ring[last] = nil
	l.ring = l.ring[:last]
}

// A limitedFile is a file that may be closed between two reads.
type limitedFile struct {
	limit *ReadLimit
	fs    FS
	name  string
	used  atomic.Bool  // since the clock's hand passed
	place int          // in the ring, while it is there; guarded by the limit's lock
	drop  func() error // releases the directory, which stays open to open the file again

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

// release releases what acquire took. If concurrent reads have opened more files than the bound, it closes some.
func (f *limitedFile) release() {
	f.mu.RUnlock()
	if f.limit.over.Load() {
		f.limit.trim()
	}
}

// reopen opens the file, if it is not. If the process has too many open, others that are
// under the same bound make room.
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
	for err != nil && f.limit.giveWay(err) {
		file, err = f.fs.Open(f.name)
	}
	if err != nil {
		f.limit.remove(f)
		if f.limit.Explain != nil {
			err = f.limit.Explain(err)
		}
		return err
	}
	f.file = file
	f.used.Store(true)
	return nil
}

func (f *limitedFile) ReadAt(p []byte, off int64) (int, error) {
	file, err := f.acquire()
	if err != nil {
		return 0, err
	}
	defer f.release()
	return file.ReadAt(p, off)
}

func (f *limitedFile) ReadNow(p []byte, off int64) NowRead {
	file, err := f.acquire()
	if err != nil {
		return NowUnable
	}
	defer f.release()
	if now, ok := file.(NowReader); ok {
		return now.ReadNow(p, off)
	}
	return NowUnable
}

func (f *limitedFile) Size() (int64, error) {
	file, err := f.acquire()
	if err != nil {
		return 0, err
	}
	defer f.release()
	return file.Size()
}

// Map implements Mapper. The memory needs no open file.
func (f *limitedFile) Map(size int64) (data []byte, unmap func() error, err error) {
	file, err := f.acquire()
	if err != nil {
		return nil, nil, err
	}
	defer f.release()
	m, ok := file.(Mapper)
	if !ok {
		return nil, nil, errors.ErrUnsupported
	}
	return m.Map(size)
}

func (f *limitedFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	if f.file == nil {
		return f.drop()
	}
	f.limit.remove(f)
	err := errors.Join(f.file.Close(), f.drop())
	f.file = nil
	return err
}
