package stress

import (
	"maps"
	"math/rand/v2"
	"slices"
)

const pageSize = 512

// A node is a file or a directory. Names lead to it, and files that are open.
type node struct {
	isDir bool

	// Of a file. The bytes before synced are on the disk, but for those of the holes:
	// pages that a failed sync has dropped. All is guarded by Disk.mu.
	data   []byte
	synced int
	holes  []span

	holders   int // of its lock
	exclusive bool

	// Of a directory: what programs see, what a power cut leaves for certain, and the
	// changes that lead from the second to the first.
	names   map[string]*node
	durable map[string]*node
	changes []change
}

type span struct{ from, to int }

// A change of a directory: node gets the name to (nil: the name goes), and the name
// from is gone.
type change struct {
	from, to string
	node     *node
}

// unlock releases a lock.
func (n *node) unlock() {
	n.holders--
	n.exclusive = false
}

func newDir() *node {
	return &node{isDir: true, names: map[string]*node{}, durable: map[string]*node{}}
}

func (n *node) change(c change) {
	c.apply(n.names)
	n.changes = append(n.changes, c)
}

func (c change) apply(names map[string]*node) {
	if c.from != "" {
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.node
	}
}

// syncNames makes the names of a directory durable.
func (n *node) syncNames() {
	for _, c := range n.changes {
		c.apply(n.durable)
	}
	n.changes = nil
}

func (n *node) truncate() { n.data, n.synced, n.holes = nil, 0, nil }

func (n *node) write(off int, p []byte) {
	if end := off + len(p); end > len(n.data) {
		old := len(n.data)
		n.data = slices.Grow(n.data, end-old)[:end]
		clear(n.data[min(old, off):off])
	}
	copy(n.data[off:], p)
	n.synced = min(n.synced, off)
}

// sync makes the file's bytes durable, but for what earlier syncs have dropped: it
// reports whether there is any of that, so that its success is a lie.
func (n *node) sync() (lie bool) {
	n.synced = len(n.data)
	return len(n.holes) > 0
}

// failSync drops what is not on the disk.
func (n *node) failSync() {
	if n.synced < len(n.data) {
		n.holes = append(n.holes, span{n.synced, len(n.data)})
		n.synced = len(n.data)
	}
}

// fork returns a copy of a file or directory as programs see it. Several names may lead to
// one file.
func (n *node) fork(done map[*node]*node) *node {
	if c := done[n]; c != nil {
		return c
	}
	c := &node{isDir: n.isDir, data: slices.Clone(n.data), synced: len(n.data)}
	done[n] = c
	if n.isDir {
		c.names = map[string]*node{}
		for name, child := range n.names {
			c.names[name] = child.fork(done)
		}
		c.durable = maps.Clone(c.names)
	}
	return c
}

// A loss decides what becomes of what was not synced.
type loss struct {
	rng  *rand.Rand
	kept int // percent
}

func (l loss) keeps() bool { return l.rng.IntN(100) < l.kept }

// crash returns the file as a power cut leaves it.
func (n *node) crash(l loss) *node {
	data := slices.Clone(n.data)
	length := n.synced // of what is there for certain
	for i := len(n.holes) - 1; i >= 0 && n.holes[i].to == length; i-- {
		length = n.holes[i].from
	}
	volatile := append(slices.Clone(n.holes), span{n.synced, len(data)})
	most := length
	if len(data) > length {
		switch l.kept {
		case 100:
			most = len(data)
		case 0:
		default:
			most += l.rng.IntN(len(data) - length + 1)
		}
	}
	for _, s := range volatile {
		for from := s.from; from < s.to; {
			to := min(s.to, (from/pageSize+1)*pageSize)
			if !l.keeps() {
				clear(data[from:to])
			}
			from = to
		}
	}
	data = data[:most]
	return &node{data: data, synced: len(data)}
}

// crashNames returns the names that a power cut leaves in a directory.
func (n *node) crashNames(l loss) map[string]*node {
	names := maps.Clone(n.durable)
	keep := func(int) bool { return l.keeps() }
	if l.rng.IntN(2) == 0 { // in the order of the journal
		upTo := len(n.changes) * l.kept / 100
		keep = func(i int) bool { return i < upTo }
	}
	for i, c := range n.changes {
		if keep(i) {
			c.apply(names)
		}
	}
	return names
}
