package vfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Errors of Mem for which package fs has no word.
var (
	errIsDir    = errors.New("is a directory")
	errNotDir   = errors.New("not a directory")
	errNotEmpty = errors.New("directory not empty")
)

// Mem is a file system in memory: for tests, and for stores that need not outlive the process. Names are cleaned
// (filepath.Clean); relative ones start at a root of their own, and every root exists. Nothing is ever lost, so syncs
// only check their arguments.
type Mem struct {
	mu    sync.RWMutex
	nodes map[string]*memNode // by cleaned path; roots are not in it
}

var _ FS = (*Mem)(nil)

// NewMem returns an empty file system.
func NewMem() *Mem { return &Mem{nodes: map[string]*memNode{}} }

// Create implements FS.
func (m *Mem) Create(name string) (WriteFile, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.makeFile("create", name)
	if err != nil {
		return nil, err
	}
	n.truncate()
	return &memWriteFile{memHandle: memHandle{name: name, node: n}}, nil
}

// Open implements FS.
func (m *Mem) Open(name string) (ReadFile, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.file(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &memReadFile{memHandle{name: name, node: n}}, nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	path := filepath.Clean(name)
	n, err := m.node(path)
	if err == nil && n.isDir && (isRoot(path) || len(m.children(path)) > 0) {
		err = errNotEmpty
	}
	if err == nil {
		delete(m.nodes, path)
	}
	return pathError("remove", name, err)
}

// Rename implements FS.
func (m *Mem) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, to := filepath.Clean(oldname), filepath.Clean(newname)
	n, err := m.node(from)
	if err == nil {
		err = m.checkRename(n, from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	if from == to {
		return nil
	}
	delete(m.nodes, from)
	m.nodes[to] = n
	if n.isDir {
		m.moveChildren(from, to)
	}
	return nil
}

// Link implements FS.
func (m *Mem) Link(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	to := filepath.Clean(newname)
	n, err := m.file(oldname)
	if err == nil {
		err = m.checkParent(to)
	}
	if err == nil {
		if _, taken := m.nodes[to]; taken || isRoot(to) {
			err = fs.ErrExist
		}
	}
	if err != nil {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: err}
	}
	m.nodes[to] = n
	return nil
}

// List implements FS.
func (m *Mem) List(dir string) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	path := filepath.Clean(dir)
	if err := m.checkDir(path); err != nil {
		return nil, pathError("list", dir, err)
	}
	return m.children(path), nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var missing []string
	for path := filepath.Clean(dir); !isRoot(path); path = filepath.Dir(path) {
		if n, ok := m.nodes[path]; !ok {
			missing = append(missing, path)
		} else if !n.isDir {
			return pathError("mkdir", dir, errNotDir)
		}
	}
	for _, path := range missing {
		m.nodes[path] = &memNode{isDir: true}
	}
	return nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return pathError("sync", dir, m.checkDir(filepath.Clean(dir)))
}

// SyncFile implements FileSyncer.
func (m *Mem) SyncFile(name string) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, err := m.file(name)
	return pathError("sync", name, err)
}

// Stat implements FS.
func (m *Mem) Stat(name string) (int64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.node(filepath.Clean(name))
	if err != nil {
		return 0, pathError("stat", name, err)
	}
	return n.size(), nil
}

// Lock implements FS.
func (m *Mem) Lock(name string, mode LockMode) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.file(name)
	if err != nil && mode == Existing {
		return nil, pathError("lock", name, err)
	} else if err != nil {
		n, err = m.makeFile("lock", name)
	}
	if err != nil {
		return nil, err
	}
	if n.exclusive || n.holders > 0 && mode == Exclusive {
		e := &LockedError{Path: name}
		if n.exclusive {
			e.PID = os.Getpid()
		}
		return nil, e
	}
	n.holders++
	n.exclusive = mode == Exclusive
	return &memLock{memHandle{node: n}, m}, nil
}

// makeFile returns the file of a name, new if there was none.
func (m *Mem) makeFile(op, name string) (*memNode, error) {
	path := filepath.Clean(name)
	n, err := m.file(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = m.checkParent(path); err == nil {
			n = new(memNode)
			m.nodes[path] = n
		}
	}
	return n, pathError(op, name, err)
}

// pathError names the operation and the path of an error; nil stays nil.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

var rootDir = &memNode{isDir: true}

func isRoot(path string) bool { return filepath.Dir(path) == path }

// node returns what a cleaned path names.
func (m *Mem) node(path string) (*memNode, error) {
	if isRoot(path) {
		return rootDir, nil
	}
	if n, ok := m.nodes[path]; ok {
		return n, nil
	}
	return nil, fs.ErrNotExist
}

func (m *Mem) file(name string) (*memNode, error) {
	n, err := m.node(filepath.Clean(name))
	if err == nil && n.isDir {
		return nil, errIsDir
	}
	return n, err
}

func (m *Mem) checkDir(path string) error {
	n, err := m.node(path)
	if err == nil && !n.isDir {
		return errNotDir
	}
	return err
}

func (m *Mem) checkParent(path string) error { return m.checkDir(filepath.Dir(path)) }

func (m *Mem) checkRename(n *memNode, from, to string) error {
	old, err := m.node(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case from != to && (old.isDir || n.isDir):
		return fs.ErrExist
	}
	if isRoot(from) || n.isDir && strings.HasPrefix(to, from+string(filepath.Separator)) {
		return fs.ErrInvalid
	}
	return m.checkParent(to)
}

// children returns the sorted base names in a directory.
func (m *Mem) children(dir string) []string {
	names := []string{}
	for path := range m.nodes {
		if filepath.Dir(path) == dir {
			names = append(names, filepath.Base(path))
		}
	}
	slices.Sort(names)
	return names
}

func (m *Mem) moveChildren(from, to string) {
	prefix := from + string(filepath.Separator)
	for _, path := range slices.Collect(maps.Keys(m.nodes)) {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			m.nodes[filepath.Join(to, rest)] = m.nodes[path]
			delete(m.nodes, path)
		}
	}
}
