package version

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/blockindex"
)

// A treeEdit changes a run and makes its new nodes. Tables that are not in order become
// an error before it searches among them.
type treeEdit struct {
	level int
	most  int // parts of a node
	err   error
}

// A change is what leaves a run, or a part of it, and what comes: tables in key order.
type change struct{ gone, added []*Table }

func (c *change) empty() bool { return len(c.gone)+len(c.added) == 0 }

// before takes off c what is before key; all of it if key is nil.
func (c *change) before(key []byte) (cut change) {
	split := func(tables *[]*Table) []*Table {
		i := len(*tables)
		if key != nil {
			i, _ = slices.BinarySearchFunc(*tables, key, func(t *Table, key []byte) int {
				return bytes.Compare(t.Smallest, key)
			})
		}
		cut := (*tables)[:i]
		*tables = (*tables)[i:]
		return cut
	}
	return change{split(&c.gone), split(&c.added)}
}

// apply returns the tree that c makes of the one under n, which shares what c does not
// touch. No tables are nil, before and after.
func (e *treeEdit) apply(n *node, c change) (*node, error) {
	if c.empty() {
		return n, nil
	}
	if n == nil {
		n = &node{}
	}
	nodes := e.parts(n, c)
	for len(nodes) > 1 {
		nodes = packed(nodes, e.most, e.inner)
	}
	if e.err != nil || len(nodes) == 0 {
		return nil, e.err
	}
	root := nodes[0]
	for len(root.kids) == 1 {
		root = root.kids[0]
	}
	return root, nil
}

// parts returns the nodes, of the depth of n, that hold what n does after c.
func (e *treeEdit) parts(n *node, c change) []*node {
	if n.kids == nil {
		return packed(c.of(n.tables), e.most, e.leaf)
	}
	kids := make([]*node, 0, len(n.kids)+1)
	for i, k := range n.kids {
		var end []byte
		if i+1 < len(n.kids) {
			end = n.kids[i+1].first().Smallest
		}
		if c.empty() {
			kids = append(kids, n.kids[i:]...)
			break
		}
		if cut := c.before(end); cut.empty() {
			kids = append(kids, k)
		} else {
			kids = append(kids, e.parts(k, cut)...)
		}
	}
	return packed(e.filled(kids), e.most, e.inner)
}

// of returns the tables of a leaf after c.
func (c change) of(tables []*Table) []*Table {
	out := make([]*Table, 0, len(tables)+len(c.added))
	for _, t := range tables {
		for len(c.added) > 0 && bytes.Compare(c.added[0].Smallest, t.Smallest) < 0 {
			out, c.added = append(out, c.added[0]), c.added[1:]
		}
		if len(c.gone) > 0 && c.gone[0] == t {
			c.gone = c.gone[1:]
		} else {
			out = append(out, t)
		}
	}
	return append(out, c.added...)
}

// packed makes as few nodes of parts as hold them, each of about the same size.
func packed[T any](parts []T, most int, pack func([]T) *node) (nodes []*node) {
	n := (len(parts) + most - 1) / most
	if n == 1 {
		return []*node{pack(parts)}
	}
	for i := range n {
		nodes = append(nodes, pack(slices.Clone(parts[len(parts)*i/n:len(parts)*(i+1)/n])))
	}
	return nodes
}

// filled merges children that have got too small, below a quarter of a full node, with a
// neighbour. A small node that was an only child could not be; it is when it gets neighbours.
func (e *treeEdit) filled(nodes []*node) []*node {
	for i := 0; i < len(nodes) && len(nodes) > 1; i++ {
		if nodes[i].size() >= e.most/4 {
			continue
		}
		i = max(i-1, 0)
		a, b := nodes[i], nodes[i+1]
		var merged []*node
		if a.kids != nil {
			merged = packed(e.filled(slices.Concat(a.kids, b.kids)), e.most, e.inner)
		} else {
			merged = packed(slices.Concat(a.tables, b.tables), e.most, e.leaf)
		}
		nodes = slices.Replace(nodes, i, i+2, merged...)
		i-- // what came of it may be too small still
	}
	return nodes
}

// leaf makes a leaf of tables.
func (e *treeEdit) leaf(tables []*Table) *node {
	n := &node{tables: tables, level: e.level, bytes: make([]int64, 0, len(tables)), totals: noTotals()}
	for i, t := range tables {
		s := totalsOf(t, e.level)
		n.totals.add(&s)
		n.bytes = append(n.bytes, n.totals.Bytes)
		if i > 0 {
			e.checkOrder(tables[i-1], t)
		}
	}
	e.index(n, func(i int) *Table { return tables[i] })
	return n
}

// inner makes a node of children.
func (e *treeEdit) inner(kids []*node) *node {
	n := &node{kids: kids, starts: make([]int, len(kids)), bytes: make([]int64, 0, len(kids)), totals: noTotals()}
	for i, k := range kids {
		n.starts[i] = n.totals.Tables
		n.totals.add(&k.totals)
		n.bytes = append(n.bytes, n.totals.Bytes)
		if i > 0 {
			e.checkOrder(kids[i-1].last(), k.first())
		}
	}
	e.index(n, func(i int) *Table { return kids[i].last() })
	return n
}

// index makes the index of a node by the largest keys of its parts. It leaves out the last,
// which may have no bound: what is past the others is looked for there.
func (e *treeEdit) index(n *node, last func(i int) *Table) {
	if e.err != nil {
		return // out of order
	}
	var b blockindex.Builder
	for i := range n.size() - 1 {
		b.Add(last(i).Largest, uint64(i+1))
	}
	n.search = blockindex.View(b.Append(nil)).Guided()
}

// checkOrder reports neighbours that are not in order, or of which one has no upper bound
// and is not the last: a search does not compare with that.
func (e *treeEdit) checkOrder(a, b *Table) {
	switch {
	case e.err != nil:
	case a.Largest == nil:
		e.err = fmt.Errorf("level %d: table %d has no upper bound and is not the last", e.level, a.Num)
	case !a.Before(b.Smallest):
		e.err = fmt.Errorf("level %d: tables %d and %d overlap at %q", e.level, a.Num, b.Num, b.Smallest)
	}
}
