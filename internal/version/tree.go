package version

import (
	"slices"

	"github.com/siftkv/siftkv/blockindex"
)

// A node is a part of a sorted run: a B+ tree with tables in key order in leaves of the same depth.
// Nodes never change. An edit copies those on the path to what it changes; the trees before and
// after it share all others. So each changed place costs the nodes' size times the tree's height.
type node struct {
	kids   []*node          // of an inner node
	tables []*Table         // of a leaf
	starts []int            // of an inner node: the position of each child's first table
	search blockindex.Index // from a key to the position of the only child or table
	bytes  []int64          // of each child or table and those before it
	level  int              // of a leaf
	totals Totals
}

// maxNode is how many children or tables a node has at most. A full one is split into halves. So a run of up to maxNode
// tables is one node, as fast to search as an index of all, and one of 10,000 has two levels. A node with less than a
// quarter is merged with a neighbour: that much room keeps alternating edits from splitting and merging each time.
const maxNode = 256

func (n *node) first() *Table {
	for n.kids != nil {
		n = n.kids[0]
	}
	return n.tables[0]
}

func (n *node) last() *Table {
	for n.kids != nil {
		n = n.kids[len(n.kids)-1]
	}
	return n.tables[len(n.tables)-1]
}

// size returns the number of children or tables.
func (n *node) size() int { return len(n.kids) + len(n.tables) }

// find returns the first table that does not end before key, and its position; nil and
// the number of tables if there is none.
func (n *node) find(key []byte) (int, *Table) {
	root, at := n, 0
	for n.kids != nil {
		i := n.search.Find(key)
		at += n.starts[i]
		n = n.kids[i]
	}
	i := n.search.Find(key)
	if t := n.tables[i]; !t.Before(key) {
		return at + i, t
	}
	i++ // key is the table's exclusive bound, or past the last table
	if i < len(n.tables) {
		return at + i, n.tables[i]
	}
	return at + i, root.at(at + i)
}

// at returns the table at a position, or nil past the last one.
func (n *node) at(i int) *Table {
	if i >= n.totals.Tables {
		return nil
	}
	for n.kids != nil {
		k := n.kid(i)
		i -= n.starts[k]
		n = n.kids[k]
	}
	return n.tables[i]
}

// kid returns the number of the child in which the table at a position is.
func (n *node) kid(i int) int {
	k, ok := slices.BinarySearch(n.starts, i)
	if !ok {
		k--
	}
	return k
}

// walk calls yield, in key order, for the tables of which may is true, and of all parts of
// the tree that they are in; nil is true of all. It reports whether yield did not end it.
func (n *node) walk(may func(*Totals) bool, yield func(*Table) bool) bool {
	if may != nil && !may(&n.totals) {
		return true
	}
	for _, k := range n.kids {
		if !k.walk(may, yield) {
			return false
		}
	}
	return walk(n.tables, n.level, may, yield)
}

// walk is node.walk for tables of a level.
func walk(tables []*Table, level int, may func(*Totals) bool, yield func(*Table) bool) bool {
	var s *Totals
	if may != nil {
		s = new(Totals)
	}
	for _, t := range tables {
		if s != nil {
			*s = totalsOf(t, level)
		}
		if (s == nil || may(s)) && !yield(t) {
			return false
		}
	}
	return true
}

// between returns the tables from a position up to another. It aliases a leaf if it can.
func (n *node) between(from, to int) (tables []*Table) {
	if n.kids == nil {
		return n.tables[from:to:to]
	}
	for i, k := range n.kids {
		lo, hi := max(from-n.starts[i], 0), min(to-n.starts[i], k.totals.Tables)
		switch {
		case lo >= hi:
		case hi-lo == to-from:
			return k.between(lo, hi)
		default:
			tables = append(tables, k.between(lo, hi)...)
		}
	}
	return tables
}

// bytesUpTo returns the bytes of the tables before a position.
func (n *node) bytesUpTo(to int) (bytes int64) {
	for n.kids != nil && to < n.totals.Tables {
		k := n.kid(to)
		bytes += n.bytesBefore(k)
		to -= n.starts[k]
		n = n.kids[k]
	}
	return bytes + n.bytesBefore(min(to, n.size()))
}

// bytesBefore returns the bytes of the first parts children or tables.
func (n *node) bytesBefore(parts int) int64 {
	if parts == 0 {
		return 0
	}
	return n.bytes[parts-1]
}
