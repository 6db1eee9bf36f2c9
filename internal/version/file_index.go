package version

import "slices"

// A location is where a version has a table.
type location struct {
	table *Table
	RunID
}

// A fileIndex is an immutable map from file numbers to what a version knows of the files. It is a radix tree: with
// returns a changed copy that shares all nodes except those on one path. An edit changes the nodes that it has made in
// place: the one edit that opens a store of many files would copy each node some fifteen times.
type fileIndex[V any] struct {
	root   *indexNode[V]
	height int // of the root: 0 for a leaf; numbers are below indexFan^(height+1)
}

const indexBits, indexFan = 4, 1 << 4 // of a number, each level of the tree takes these bits

// An indexNode has children, or, as a leaf, values: indexFan of them.
type indexNode[V any] struct {
	kids   []*indexNode[V]
	values []*V
	maker  *byte // stands for the edit that has made the node
}

// get returns what is known of a number, or nil.
func (m fileIndex[V]) get(num uint64) *V {
	if num>>(indexBits*(m.height+1)) != 0 {
		return nil
	}
	n := m.root
	for h := m.height; n != nil && h > 0; h-- {
		n = n.kids[num>>(indexBits*h)%indexFan]
	}
	if n == nil {
		return nil
	}
	return n.values[num%indexFan]
}

// with returns the map in which v is known of num, or nothing if v is nil. The receiver must not be used after that, if
// the same edit has changed it.
func (m fileIndex[V]) with(num uint64, v *V, by *byte) fileIndex[V] {
	for num>>(indexBits*(m.height+1)) != 0 {
		if m.height++; m.root != nil {
			m.root = &indexNode[V]{slices.Insert(make([]*indexNode[V], indexFan-1), 0, m.root), nil, by}
		}
	}
	m.root = m.root.with(m.height, num, v, by)
	return m
}

func (n *indexNode[V]) with(height int, num uint64, v *V, by *byte) *indexNode[V] {
	switch {
	case n == nil && height == 0:
		n = &indexNode[V]{nil, make([]*V, indexFan), by}
	case n == nil:
		n = &indexNode[V]{make([]*indexNode[V], indexFan), nil, by}
	case n.maker != by:
		n = &indexNode[V]{slices.Clone(n.kids), slices.Clone(n.values), by}
	}
	if i := num >> (indexBits * height) % indexFan; height == 0 {
		n.values[i] = v
	} else {
		n.kids[i] = n.kids[i].with(height-1, num, v, by)
	}
	if v == nil && none(n.kids) && none(n.values) {
		return nil
	}
	return n
}

func none[T any](of []*T) bool { return !slices.ContainsFunc(of, func(p *T) bool { return p != nil }) }

// all calls yield by ascending numbers until it returns false, and reports whether it never did.
func (n *indexNode[V]) all(yield func(*V) bool) bool {
	if n == nil {
		return true
	}
	for _, v := range n.values {
		if v != nil && !yield(v) {
			return false
		}
	}
	for _, k := range n.kids {
		if !k.all(yield) {
			return false
		}
	}
	return true
}
