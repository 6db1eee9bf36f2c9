package version

// A place is where a version has a table.
type place struct {
	table *Table
	RunID
}

// A places is a map from the numbers of tables to their places that never changes: a radix
// tree, of which with returns a changed copy that shares all but the nodes on one path.
type places struct {
	root   *placesNode
	height int // of the root: 0 for a leaf; numbers are below placesFan^(height+1)
}

const (
	placesBits = 4
	placesFan  = 1 << placesBits
)

// A placesNode has children, or, as a leaf, places.
type placesNode struct {
	kids   *[placesFan]*placesNode
	places *[placesFan]*place
}

// get returns the place of a number, or nil.
func (m places) get(num uint64) *place {
	if num>>(placesBits*(m.height+1)) != 0 {
		return nil
	}
	n := m.root
	for h := m.height; n != nil && h > 0; h-- {
		n = n.kids[num>>(placesBits*h)%placesFan]
	}
	if n == nil {
		return nil
	}
	return n.places[num%placesFan]
}

// with returns the map in which num has a place, or none if p is nil.
func (m places) with(num uint64, p *place) places {
	for num>>(placesBits*(m.height+1)) != 0 {
		if m.height++; m.root != nil {
			m.root = &placesNode{kids: &[placesFan]*placesNode{m.root}}
		}
	}
	m.root = m.root.with(m.height, num, p)
	return m
}

func (n *placesNode) with(height int, num uint64, p *place) *placesNode {
	i := num >> (placesBits * height) % placesFan
	if height == 0 {
		next := [placesFan]*place{}
		if n != nil {
			next = *n.places
		}
		if next[i] = p; next == ([placesFan]*place{}) {
			return nil
		}
		return &placesNode{places: &next}
	}
	next := [placesFan]*placesNode{}
	if n != nil {
		next = *n.kids
	}
	if next[i] = next[i].with(height-1, num, p); next == ([placesFan]*placesNode{}) {
		return nil
	}
	return &placesNode{kids: &next}
}
