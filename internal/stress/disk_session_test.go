package stress

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Call is a call of the file system that is about to be made.
type Call struct {
	Op      string // the method's name in lower case; of open files "read", "write", "sync", "close"
	Path    string
	Kind    manifest.FileKind
	Num     uint64 // in the file's name
	Changes bool   // the disk
	Bytes   int    // to write
}

// An Outcome is what becomes of a call. The zero value is success.
type Outcome struct {
	Err   error         // of a call that fails
	Short int           // bytes that a write writes all the same
	Delay time.Duration // before the call
	Cut   bool          // the power is cut before the call, or in the middle of a write
	Kill  bool          // the process dies there
	Room  int64         // bytes that the disk has; 0: any number
}

// A Session is what a process sees of a disk: a vfs.FS whose calls may fail, take time, or
// be the last before the power is cut or the process dies, as a function says that is asked
// before each call.
type Session struct {
	disk   *Disk
	decide func(Call) Outcome // nil: all calls succeed
	gone   chan struct{}
	dead   bool           // guarded by Disk.mu
	flight sync.RWMutex   // held for reading from the decision about a call to its end
	locked []*node        // an entry for each lock
	beside bool           // a process of its own
	open   map[string]int // files that are open, by name; guarded by Disk.mu
}

var (
	_ vfs.FS         = (*Session)(nil)
	_ vfs.FileSyncer = (*Session)(nil)
	_ vfs.FreeSpacer = (*Session)(nil)
)

// Mount returns a new session. The function is asked before each call, by several
// goroutines at once, and must not use the disk.
func (d *Disk) Mount(decide func(Call) Outcome) *Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &Session{disk: d, decide: decide, gone: make(chan struct{}), open: map[string]int{}}
	d.sessions = append(d.sessions, s)
	return s
}

// MountBeside returns a new session of a process that does not end with the others, unless the power is cut.
func (d *Disk) MountBeside(decide func(Call) Outcome) *Session {
	s := d.Mount(decide)
	d.mu.Lock()
	defer d.mu.Unlock()
	s.beside = true
	return s
}

// Gone is closed when the session has ended by Kill or Cut.
func (s *Session) Gone() <-chan struct{} { return s.gone }

// Settle waits for the calls that are under way: what was decided of them before has
// happened when it returns.
func (s *Session) Settle() {
	s.flight.Lock()
	defer s.flight.Unlock()
}

// OpenFiles returns the names of the files and locks that the session has open.
func (s *Session) OpenFiles() []string {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return slices.Sorted(maps.Keys(s.open))
}

// opened and closed keep account of what is open. The caller holds Disk.mu.
func (s *Session) opened(name string) { s.open[name]++ }

func (s *Session) closed(name string) {
	if s.open[name]--; s.open[name] == 0 {
		delete(s.open, name)
	}
}

// Unmount ends a session whose store was closed.
func (s *Session) Unmount() {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.disk.sessions = slices.DeleteFunc(s.disk.sessions, func(o *Session) bool { return o == s })
	s.end()
}

func (s *Session) end() {
	if s.dead {
		return
	}
	s.dead = true
	for _, n := range s.locked {
		n.unlock()
	}
	close(s.gone)
}

// do makes a call, or lets it fail. Of a write that does not succeed, part gets the
// number of bytes that are written.
func (s *Session) do(c Call, call func() error, part func(n int)) error {
	c.Kind, c.Num = manifest.ParseFileName(filepath.Base(c.Path))
	s.flight.RLock()
	defer s.flight.RUnlock()
	var o Outcome
	if s.decide != nil {
		o = s.decide(c)
	}
	if o.Delay > 0 {
		time.Sleep(o.Delay)
	}
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.dead {
		return &fs.PathError{Op: c.Op, Path: c.Path, Err: ErrGone}
	}
	s.disk.counts.Calls++
	if c.Changes && s.decide != nil {
		s.disk.counts.Changes++
	}
	err := o.Err
	switch {
	case o.Cut || o.Kill || err != nil:
		if part != nil && (c.Op != "sync" || !o.Kill) {
			part(min(o.Short, c.Bytes))
		}
		if o.Cut || o.Kill {
			s.disk.die(o.Cut)
			err = ErrGone
		}
	case c.Op == "write" && o.Room > 0 && s.disk.used()+int64(c.Bytes) > o.Room:
		part(int(max(o.Room-s.disk.used(), 0)))
		s.disk.counts.Full++
		err = syscall.ENOSPC
	default:
		err = call()
	}
	if err != nil {
		return &fs.PathError{Op: c.Op, Path: c.Path, Err: err}
	}
	return nil
}

// Create implements vfs.FS.
func (s *Session) Create(name string) (vfs.WriteFile, error) {
	w := &writeFile{s: s, name: name}
	err := s.do(Call{Op: "create", Path: name, Changes: true}, func() (err error) {
		if w.n, err = s.disk.makeFile(name); err == nil {
			w.n.truncate()
			s.opened(name)
		}
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Open implements vfs.FS.
func (s *Session) Open(name string) (vfs.ReadFile, error) {
	r := &readFile{s: s, name: name}
	err := s.do(Call{Op: "open", Path: name}, func() (err error) {
		if r.n, err = s.disk.findFile(name); err == nil {
			s.opened(name)
		}
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Remove implements vfs.FS.
func (s *Session) Remove(name string) error {
	return s.do(Call{Op: "remove", Path: name, Changes: true}, func() error { return s.disk.remove(name) }, nil)
}

// Rename implements vfs.FS.
func (s *Session) Rename(from, to string) error {
	return s.do(Call{Op: "rename", Path: to, Changes: true}, func() error { return s.disk.rename(from, to) }, nil)
}

// Link implements vfs.FS.
func (s *Session) Link(from, to string) error {
	return s.do(Call{Op: "link", Path: to, Changes: true}, func() error { return s.disk.link(from, to) }, nil)
}

// List implements vfs.FS.
func (s *Session) List(dir string) (names []string, err error) {
	err = s.do(Call{Op: "list", Path: dir}, func() error {
		n, err := s.disk.find(dir)
		if err == nil && !n.isDir {
			err = errNotDir
		}
		if err == nil {
			for name := range n.names {
				names = append(names, name)
			}
			slices.Sort(names)
		}
		return err
	}, nil)
	return names, err
}

// MkdirAll implements vfs.FS.
func (s *Session) MkdirAll(dir string) error {
	return s.do(Call{Op: "mkdir", Path: dir, Changes: true}, func() error { return s.disk.mkdirAll(dir) }, nil)
}

// SyncDir implements vfs.FS.
func (s *Session) SyncDir(dir string) error {
	return s.do(Call{Op: "syncdir", Path: dir, Changes: true}, func() error {
		n, err := s.disk.find(dir)
		if err == nil && !n.isDir {
			err = errNotDir
		}
		if err == nil {
			n.syncNames()
		}
		return err
	}, nil)
}

// SyncFile implements vfs.FileSyncer.
func (s *Session) SyncFile(name string) error {
	n := func() *node {
		s.disk.mu.Lock()
		defer s.disk.mu.Unlock()
		n, _ := s.disk.findFile(name)
		return n
	}()
	if n == nil {
		return &fs.PathError{Op: "sync", Path: name, Err: fs.ErrNotExist}
	}
	return s.sync(name, n)
}

func (s *Session) sync(name string, n *node) error {
	return s.do(Call{Op: "sync", Path: name, Changes: true}, func() error {
		if n.sync() {
			s.disk.counts.Lies++
		}
		return nil
	}, func(int) { n.failSync() })
}

// FreeSpace implements vfs.FreeSpacer.
func (s *Session) FreeSpace(dir string) (int64, error) {
	if s.decide == nil {
		return 0, errors.ErrUnsupported
	}
	room := s.decide(Call{Op: "free", Path: dir}).Room
	if room == 0 {
		return 0, errors.ErrUnsupported
	}
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return max(room-s.disk.used(), 0), nil
}

// Stat implements vfs.FS.
func (s *Session) Stat(name string) (size int64, err error) {
	err = s.do(Call{Op: "stat", Path: name}, func() error {
		n, err := s.disk.find(name)
		if err == nil {
			size = int64(len(n.data))
		}
		return err
	}, nil)
	return size, err
}

// Lock implements vfs.FS.
func (s *Session) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	var locked *vfs.LockedError
	l := &lock{s: s, name: name}
	err := s.do(Call{Op: "lock", Path: name, Changes: true}, func() (err error) {
		if mode == vfs.Existing {
			l.n, err = s.disk.findFile(name)
		} else {
			l.n, err = s.disk.makeFile(name)
		}
		if err != nil {
			return err
		}
		if l.n.exclusive || l.n.holders > 0 && mode == vfs.Exclusive {
			locked = &vfs.LockedError{Path: name}
			if l.n.exclusive {
				locked.PID = os.Getpid()
			}
			return nil
		}
		l.n.holders++
		l.n.exclusive = mode == vfs.Exclusive
		s.locked = append(s.locked, l.n)
		s.opened(name)
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	if locked != nil {
		return nil, locked
	}
	return l, nil
}
