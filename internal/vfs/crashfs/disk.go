// Package crashfs is a file system in memory whose power can be cut, for tests. What was synced survives: bytes need a
// sync of their file, names one of their directory. Of the rest any share of blocks and of names survives.
package crashfs

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// blockSize is the unit in which bytes survive that were not synced.
const blockSize = 4096

// A Disk is files in memory. It is safe for concurrent use. The root is its only directory at first, and relative names
// start there too.
type Disk struct {
	mu   sync.RWMutex
	root *node
}

// NewDisk returns an empty disk.
func NewDisk() *Disk { return &Disk{root: newDir()} }

// A node is a file or a directory. Names and open files share it. Disk.mu guards it.
type node struct {
	data, synced []byte
	truncated    bool // since synced

	names, syncedNames map[string]*node // nil in a file
}

func newDir() *node { return &node{names: map[string]*node{}} }

func (n *node) isDir() bool { return n.names != nil }

// Cut returns what a power cut at this moment leaves: of what was not synced nothing, everything or any share.
func (d *Disk) Cut(rng *rand.Rand) *Disk {
	return d.CutTo([]int{0, rng.IntN(101), 100}[rng.IntN(3)], rng)
}

// CutTo returns what a power cut at this moment leaves, with percent of what was not synced. The random numbers say
// which; without a percentage they may be nil.
func (d *Disk) CutTo(percent int, rng *rand.Rand) *Disk {
	d.mu.RLock()
	defer d.mu.RUnlock()
	c := cut{percent, rng, map[*node]*node{}}
	return &Disk{root: c.survivor(d.root)}
}

// A cut copies what survives.
type cut struct {
	percent int
	rng     *rand.Rand
	copies  map[*node]*node // a file that has two names has them in the copy too
}

// survives decides on something that was not synced.
func (c *cut) survives() bool { return c.percent > 0 && c.rng.IntN(100) < c.percent }

func (c *cut) survivor(n *node) *node {
	if known, ok := c.copies[n]; ok {
		return known
	}
	after := &node{}
	c.copies[n] = after
	if !n.isDir() {
		after.data = c.bytes(n)
		after.synced = slices.Clone(after.data)
		return after
	}
	after.names = c.entries(n)
	for _, name := range sortedNames(after.names) {
		after.names[name] = c.survivor(after.names[name])
	}
	after.syncedNames = maps.Clone(after.names)
	return after
}

// bytes returns what survives of a file: each block of the last sync or as it is.
func (c *cut) bytes(n *node) (data []byte) {
	if !n.truncated || !c.survives() {
		data = slices.Clone(n.synced)
	}
	for at := 0; at < len(n.data); at += blockSize {
		if !c.survives() {
			continue
		}
		block := n.data[at:min(at+blockSize, len(n.data))]
		if grow := at + len(block) - len(data); grow > 0 {
			data = append(data, make([]byte, grow)...)
		}
		copy(data[at:], block)
	}
	return data
}

// entries returns the names that survive in a directory. A rename within it leads to at least one of its two names.
func (c *cut) entries(n *node) map[string]*node {
	after := maps.Clone(n.syncedNames)
	if after == nil {
		after = map[string]*node{}
	}
	kept := map[*node]bool{}
	for _, name := range sortedNames(n.names) {
		child := n.names[name]
		if n.syncedNames[name] == child || c.survives() {
			after[name], kept[child] = child, true
		}
	}
	linked := map[*node]bool{}
	for _, child := range n.names {
		linked[child] = true
	}
	for _, name := range sortedNames(n.syncedNames) {
		child := n.syncedNames[name]
		if n.names[name] == nil && (kept[child] || !linked[child]) && c.survives() {
			delete(after, name)
		}
	}
	return after
}

func sortedNames(names map[string]*node) []string { return slices.Sorted(maps.Keys(names)) }

// Edit lets a function change the bytes of a file in place. The change is durable.
func (d *Disk) Edit(name string, edit func(data []byte)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.file(name)
	if err != nil {
		return pathError("edit", name, err)
	}
	edit(n.data)
	n.sync()
	return nil
}

func (n *node) sync() {
	if n.isDir() {
		n.syncedNames = maps.Clone(n.names)
		return
	}
	n.synced, n.truncated = append(n.synced[:0], n.data...), false
}

var (
	errIsDir    = errors.New("is a directory")
	errNotDir   = errors.New("not a directory")
	errNotEmpty = errors.New("directory not empty")
)

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// parts returns the elements of a path from the root.
func parts(name string) []string {
	return strings.FieldsFunc(filepath.Clean(name), func(r rune) bool { return r == filepath.Separator })
}

func (d *Disk) node(name string) (*node, error) {
	n := d.root
	for _, part := range parts(name) {
		if part == "." {
			continue
		}
		if !n.isDir() {
			return nil, errNotDir
		}
		if n = n.names[part]; n == nil {
			return nil, fs.ErrNotExist
		}
	}
	return n, nil
}

func (d *Disk) file(name string) (*node, error) {
	n, err := d.node(name)
	if err == nil && n.isDir() {
		return nil, errIsDir
	}
	return n, err
}

func (d *Disk) dir(name string) (*node, error) {
	n, err := d.node(name)
	if err == nil && !n.isDir() {
		return nil, errNotDir
	}
	return n, err
}

func (d *Disk) parent(name string) (dir *node, base string, err error) {
	name = filepath.Clean(name)
	if dir, err = d.dir(filepath.Dir(name)); err != nil {
		return nil, "", err
	}
	return dir, filepath.Base(name), nil
}
