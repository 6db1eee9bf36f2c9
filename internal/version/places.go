package version

// A place is where a version has a table.
type place struct {
	table *Table
	RunID
}

// A byNum is an immutable map from file numbers to what a version knows of the files. It is a radix
// tree: with returns a changed copy that shares all nodes except those on one path.
type byNum[V any] struct {
	root   *numNode[V]
	height int // of the root: 0 for a leaf; numbers are below numFan^(height+1)
}

const (
	numBits = 4
	numFan  = 1 << numBits
)

// A numNode has children, or, as a leaf, values.
type numNode[V any] struct {
	kids   *[numFan]*numNode[V]
	values *[numFan]*V
}

// get returns what is known of a number, or nil.
func (m byNum[V]) get(num uint64) *V {
	if num>>(numBits*(m.height+1)) != 0 {
		return nil
	}
	n := m.root
	for h := m.height; n != nil && h > 0; h-- {
		n = n.kids[num>>(numBits*h)%numFan]
	}
	if n == nil {
		return nil
	}
	return n.values[num%numFan]
}

// with returns the map in which v is known of num, or nothing if v is nil.
func (m byNum[V]) with(num uint64, v *V) byNum[V] {
	for num>>(numBits*(m.height+1)) != 0 {
		if m.height++; m.root != nil {
			m.root = &numNode[V]{kids: &[numFan]*numNode[V]{m.root}}
		}
	}
	m.root = m.root.with(m.height, num, v)
	return m
}

func (n *numNode[V]) with(height int, num uint64, v *V) *numNode[V] {
	i := num >> (numBits * height) % numFan
	if height == 0 {
		next := [numFan]*V{}
		if n != nil {
			next = *n.values
		}
		if next[i] = v; next == ([numFan]*V{}) {
			return nil
		}
		return &numNode[V]{values: &next}
	}
	next := [numFan]*numNode[V]{}
	if n != nil {
		next = *n.kids
	}
	if next[i] = next[i].with(height-1, num, v); next == ([numFan]*numNode[V]{}) {
		return nil
	}
	return &numNode[V]{kids: &next}
}

// all calls yield by ascending numbers until it returns false, and reports whether it never did.
func (n *numNode[V]) all(yield func(*V) bool) bool {
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
