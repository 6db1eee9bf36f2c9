package version

// A location is where a version has a table.
type location struct {
	table *Table
	RunID
}

// A fileIndex is an immutable map from file numbers to what a version knows of the files. It is a radix
// tree: with returns a changed copy that shares all nodes except those on one path.
type fileIndex[V any] struct {
	root   *indexNode[V]
	height int // of the root: 0 for a leaf; numbers are below indexFan^(height+1)
}

const (
	indexBits = 4
	indexFan  = 1 << indexBits
)

// An indexNode has children, or, as a leaf, values.
type indexNode[V any] struct {
	kids   *[indexFan]*indexNode[V]
	values *[indexFan]*V
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

// with returns the map in which v is known of num, or nothing if v is nil.
func (m fileIndex[V]) with(num uint64, v *V) fileIndex[V] {
	for num>>(indexBits*(m.height+1)) != 0 {
		if m.height++; m.root != nil {
			m.root = &indexNode[V]{kids: &[indexFan]*indexNode[V]{m.root}}
		}
	}
	m.root = m.root.with(m.height, num, v)
	return m
}

func (n *indexNode[V]) with(height int, num uint64, v *V) *indexNode[V] {
	i := num >> (indexBits * height) % indexFan
	if height == 0 {
		next := [indexFan]*V{}
		if n != nil {
			next = *n.values
		}
		if next[i] = v; next == ([indexFan]*V{}) {
			return nil
		}
		return &indexNode[V]{values: &next}
	}
	next := [indexFan]*indexNode[V]{}
	if n != nil {
		next = *n.kids
	}
	if next[i] = next[i].with(height-1, num, v); next == ([indexFan]*indexNode[V]{}) {
		return nil
	}
	return &indexNode[V]{kids: &next}
}

// all calls yield by ascending numbers until it returns false, and reports whether it never did.
func (n *indexNode[V]) all(yield func(*V) bool) bool {
	if n == nil {
		return true
	}
	if n.values != nil {
		for _, v := range n.values {
			if v != nil && !yield(v) {
				return false
			}
		}
		return true
	}
	for _, k := range n.kids {
		if !k.all(yield) {
			return false
		}
	}
	return true
}
