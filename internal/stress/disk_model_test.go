package stress

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Errors for which package fs has no word.
var (
	errIsDir    = errors.New("is a directory")
	errNotDir   = errors.New("not a directory")
	errNotEmpty = errors.New("directory not empty")
)

// ErrGone is what every call of a session returns after its process has died or the power
// was cut.
var ErrGone = errors.New("disk: the process is gone")

// A Disk is a disk in memory that outlives processes and, as disks do, loses what was not
// synced. It holds files and directories, and of each what a power cut would leave. A
// Session is what one process sees of it. A Disk is safe for concurrent use.
//
// A power cut leaves, of a file, everything that a successful Sync covers, and of the rest
// some of the pages (of 512 bytes), the others being zeros, up to some length. Of a
// directory it leaves the names as of the last SyncDir, and of the changes since then some:
// none, all, those up to a moment, or any. A rename happens as a whole or not at all.
//
// A sync that fails loses the pages that it should have written: they can still be read
// until the power is cut, and no later sync writes them, although it reports success. So
// Linux behaves on most file systems (Rebello et al., "Can Applications Recover from fsync
// Failures?", USENIX ATC 2020). A directory whose sync fails is spared that: a later sync
// that succeeds has made its names durable.
type Disk struct {
	mu       sync.Mutex
	root     *node
	sessions []*Session
	rng      *rand.Rand
	counts   DiskCounts
}

// DiskCounts are what happened on a disk.
type DiskCounts struct {
	Calls   uint64 // of all sessions
	Changes uint64 // of them, those that change the disk, but for sessions whose calls all succeed
	Lies    uint64 // syncs that reported success for pages that an earlier one had dropped
	Cuts    uint64 // of the power
	Kills   uint64 // of a process
	Full    uint64 // writes that found no room on a small disk
}

// NewDisk returns an empty disk. What power cuts leave is drawn from a seed.
func NewDisk(seed uint64) *Disk {
	return &Disk{root: newDir(), rng: rand.New(rand.NewPCG(seed, 0xd15c))}
}

// Counts returns what has happened so far.
func (d *Disk) Counts() DiskCounts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

// used returns the bytes of all files that have a name. The caller holds d.mu.
func (d *Disk) used() (bytes int64) {
	seen := map[*node]bool{}
	var count func(*node)
	count = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		bytes += int64(len(n.data))
		for _, child := range n.names {
			count(child)
		}
	}
	count(d.root)
	return bytes
}

// Used returns the bytes of all files that have a name.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used()
}

// Cut cuts the power: all sessions end, and what was not synced is lost.
func (d *Disk) Cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.die(true)
}

// Kill ends all sessions, as processes end. Nothing is lost but what they had in memory.
func (d *Disk) Kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.die(false)
}

// die ends all sessions, and takes what was not synced if the power is cut. The caller holds
// d.mu.
func (d *Disk) die(cut bool) {
	d.sessions = slices.DeleteFunc(d.sessions, func(s *Session) bool {
		if dies := cut || !s.beside; dies {
			s.end()
		}
		return s.dead
	})
	if !cut {
		d.counts.Kills++
		return
	}
	d.counts.Cuts++
	l := loss{rng: d.rng, kept: []int{0, 1 + d.rng.IntN(99), 100}[d.rng.IntN(3)]}
	d.root = crashDir(d.root, l, map[*node]*node{})
}

// crashDir returns a directory as a power cut leaves it. Several names may lead to one
// file.
func crashDir(n *node, l loss, done map[*node]*node) *node {
	after := newDir()
	names := n.crashNames(l)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		child := names[name]
		if done[child] == nil {
			if child.isDir {
				done[child] = crashDir(child, l, done)
			} else {
				done[child] = child.crash(l)
			}
		}
		after.names[name] = done[child]
	}
	after.durable = maps.Clone(after.names)
	return after
}

// Fork returns another disk that has what programs see of this one, all of it durable.
func (d *Disk) Fork(seed uint64) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := NewDisk(seed)
	f.root = d.root.fork(map[*node]*node{})
	return f
}

// Export writes a directory, as programs see it, to one of the operating system. There
// are no directories in it.
func (d *Disk) Export(dir, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.find(dir)
	if err != nil {
		return err
	}
	for name, file := range n.names {
		if err := os.WriteFile(filepath.Join(to, name), file.data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func split(name string) []string {
	path := strings.Trim(filepath.ToSlash(filepath.Clean(name)), "/")
	if path == "" || path == "." {
		return nil
	}
	return strings.Split(path, "/")
}

// find returns what a path leads to.
func (d *Disk) find(name string) (*node, error) {
	n := d.root
	for _, part := range split(name) {
		if !n.isDir {
			return nil, errNotDir
		}
		if n = n.names[part]; n == nil {
			return nil, fs.ErrNotExist
		}
	}
	return n, nil
}

func (d *Disk) findFile(name string) (*node, error) {
	n, err := d.find(name)
	if err == nil && n.isDir {
		err = errIsDir
	}
	return n, err
}

// parent returns the directory of a name, and its last part.
func (d *Disk) parent(name string) (*node, string, error) {
	n, err := d.find(filepath.Dir(filepath.Clean(name)))
	if err == nil && !n.isDir {
		err = errNotDir
	}
	return n, filepath.Base(name), err
}

// makeFile returns the file of a name, new if there was none.
func (d *Disk) makeFile(name string) (*node, error) {
	dir, base, err := d.parent(name)
	if err != nil {
		return nil, err
	}
	n := dir.names[base]
	if n == nil {
		n = new(node)
		dir.change(change{to: base, node: n})
	} else if n.isDir {
		return nil, errIsDir
	}
	return n, nil
}

func (d *Disk) remove(name string) error {
	dir, base, err := d.parent(name)
	if err != nil {
		return err
	}
	n := dir.names[base]
	switch {
	case n == nil:
		return fs.ErrNotExist
	case n.isDir && len(n.names) > 0:
		return errNotEmpty
	}
	dir.change(change{from: base})
	return nil
}

// rename works within a directory, which is all that a store asks for.
func (d *Disk) rename(from, to string) error {
	dir, oldBase, err := d.parent(from)
	if err != nil {
		return err
	}
	other, newBase, err := d.parent(to)
	if err != nil {
		return err
	}
	n := dir.names[oldBase]
	switch {
	case n == nil:
		return fs.ErrNotExist
	case other != dir || n.isDir:
		return fs.ErrInvalid
	case dir.names[newBase] != nil && dir.names[newBase].isDir:
		return errIsDir
	case oldBase != newBase:
		dir.change(change{from: oldBase, to: newBase, node: n})
	}
	return nil
}

func (d *Disk) link(from, to string) error {
	n, err := d.findFile(from)
	if err != nil {
		return err
	}
	dir, base, err := d.parent(to)
	if err != nil {
		return err
	}
	if dir.names[base] != nil {
		return fs.ErrExist
	}
	dir.change(change{to: base, node: n})
	return nil
}

func (d *Disk) mkdirAll(name string) error {
	n := d.root
	for _, part := range split(name) {
		if !n.isDir {
			return errNotDir
		}
		child := n.names[part]
		if child == nil {
			child = newDir()
			n.change(change{to: part, node: child})
		}
		n = child
	}
	if !n.isDir {
		return errNotDir
	}
	return nil
}

// RemoveAll removes a directory and all that is in it, for good.
func (d *Disk) RemoveAll(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dir, base, err := d.parent(name); err == nil {
		delete(dir.names, base)
		delete(dir.durable, base)
		dir.changes = slices.DeleteFunc(dir.changes, func(c change) bool { return c.to == base || c.from == base })
	}
}
