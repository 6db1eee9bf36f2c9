package version

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A treeModel is a run as a slice of tables beside the run itself, whose nodes are small.
type treeModel struct {
	edit   treeEdit
	tables []*Table
	root   *node
	num    uint64
}

func newTreeModel() *treeModel { return &treeModel{edit: treeEdit{level: 3, most: 8}} }

func keyAt(i int) []byte { return fmt.Appendf(nil, "%06d", i) }

// bounds of table i of a key space in which neighbours may touch: an exclusive upper bound is the
// next table's smallest key.
func (m *treeModel) newTable(t *rapid.T, i int) *Table {
	m.num++
	tb := NewTable(manifest.Table{Num: m.num, Size: int64(m.num), Entries: 1 + uint64(i%5), Smallest: keyAt(10 * i)})
	if tb.Largest = keyAt(10*i + 9); rapid.Bool().Draw(t, "exclusive") {
		tb.Largest, tb.LargestExclusive = keyAt(10*(i+1)), true
	}
	if rapid.IntRange(0, 9).Draw(t, "tombstones") == 0 {
		tb.RangeDeletes = 2
	}
	if rapid.IntRange(0, 9).Draw(t, "expiring") == 0 {
		tb.Expiring, tb.LastExpiry = tb.Entries, uint64(i)
	}
	return tb
}

// change takes tables out of a stretch of the run, and puts others there.
func (m *treeModel) change(t *rapid.T) {
	const space = 600
	from := rapid.IntRange(0, space-1).Draw(t, "from")
	to := min(space, from+rapid.SampledFrom([]int{1, 1, 3, 40, space}).Draw(t, "width"))
	keep := rapid.IntRange(0, 4).Draw(t, "keep")
	add := rapid.IntRange(0, 4).Draw(t, "add")
	var c change
	var next []*Table
	taken := map[string]bool{}
	for i, tb := range m.tables {
		inside := bytes.Compare(tb.Smallest, keyAt(10*from)) >= 0 && bytes.Compare(tb.Smallest, keyAt(10*to)) < 0
		if inside && i%5 >= keep {
			c.gone = append(c.gone, tb)
		} else {
			next, taken[string(tb.Smallest)] = append(next, tb), true
		}
	}
	for i := from; i < to; i++ {
		if !taken[string(keyAt(10*i))] && i%5 < add {
			c.added = append(c.added, m.newTable(t, i))
		}
	}
	m.tables = append(next, c.added...)
	slices.SortFunc(m.tables, func(a, b *Table) int { return bytes.Compare(a.Smallest, b.Smallest) })
	before, old := nodesOf(m.root), m.root
	var held []*Table
	if old != nil {
		held = old.between(0, old.totals.Tables)
	}
	root, err := m.edit.apply(m.root, c)
	require.NoError(t, err)
	m.root = root
	made := 0
	for n := range nodesOf(root) {
		if !before[n] {
			made++
		}
	}
	changed := len(c.gone) + len(c.added)
	require.LessOrEqual(t, made, 4*height(root)*min(changed, 2+changed/m.edit.most*4), "nodes for %d tables", changed)
	if old != nil {
		require.Equal(t, held, old.between(0, old.totals.Tables), "the run before is as it was")
	}
}

func height(n *node) (h int) {
	for ; n != nil; h++ {
		if n.kids == nil {
			return h + 1
		}
		n = n.kids[0]
	}
	return h
}

func nodesOf(n *node) map[*node]bool {
	nodes := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		nodes[n] = true
		for _, k := range n.kids {
			visit(k)
		}
	}
	if n != nil {
		visit(n)
	}
	return nodes
}

// check holds the tree against the slice.
func (m *treeModel) check(t *rapid.T) {
	if len(m.tables) == 0 {
		require.Nil(t, m.root)
		return
	}
	m.checkNodes(t, m.root, height(m.root))
	r := &Run{Level: m.edit.level, root: m.root}
	require.Equal(t, len(m.tables), r.Len())
	require.Equal(t, m.tables, slices.Collect(r.All()))
	require.Equal(t, m.tables, r.Tables())
	for i, tb := range m.tables {
		require.Same(t, tb, r.At(i))
	}
	for range 20 {
		key := keyAt(rapid.IntRange(0, 6100).Draw(t, "key"))
		want := slices.IndexFunc(m.tables, func(tb *Table) bool { return !tb.Before(key) })
		i, found := r.Find(key)
		if want < 0 {
			require.Equal(t, r.Len(), i)
			require.Nil(t, found)
		} else {
			require.Equal(t, want, i)
			require.Same(t, m.tables[want], found)
		}
		require.Equal(t, want >= 0 && m.tables[want].Contains(key), r.MayContain(key))
		m.checkSpan(t, r, key)
	}
	ranges := func(s *Totals) bool { return s.RangeDeletes > 0 }
	require.Equal(t, m.those(func(tb *Table) bool { return tb.RangeDeletes > 0 }), slices.Collect(r.Where(ranges)))
	now := uint64(rapid.IntRange(0, 600).Draw(t, "now"))
	require.Equal(t, m.those(func(tb *Table) bool { return MostlyGarbage([]*Table{tb}, m.edit.level, now) }),
		slices.Collect(r.Where(func(s *Totals) bool { return s.FirstGarbage <= now })))
}

func (m *treeModel) checkSpan(t *rapid.T, r *Run, lo []byte) {
	hi := keyAt(rapid.IntRange(0, 6100).Draw(t, "hi"))
	if rapid.IntRange(0, 9).Draw(t, "unbounded") == 0 {
		hi = nil
	}
	if hi != nil && bytes.Compare(lo, hi) > 0 {
		lo, hi = hi, lo
	}
	want := m.those(func(tb *Table) bool { return tb.Overlaps(lo, hi) })
	got := r.Overlapping(lo, hi)
	require.Equal(t, len(want), len(got), "[%s, %s)", lo, hi)
	require.Equal(t, want, append([]*Table(nil), got...))
	require.Equal(t, len(want) > 0, r.Overlaps(lo, hi))
	require.Equal(t, SizeOf(want), r.BytesOver(lo, hi))
}

func (m *treeModel) those(f func(*Table) bool) (tables []*Table) {
	for _, tb := range m.tables {
		if f(tb) {
			tables = append(tables, tb)
		}
	}
	return tables
}

// checkNodes checks a node's size, depth and totals.
func (m *treeModel) checkNodes(t *rapid.T, n *node, height int) *Totals {
	require.LessOrEqual(t, n.size(), m.edit.most)
	if n != m.root {
		require.GreaterOrEqual(t, n.size(), m.edit.most/4)
	}
	totals := noTotals()
	if n.kids == nil {
		require.Equal(t, 1, height)
		for _, tb := range n.tables {
			s := totalsOf(tb, m.edit.level)
			totals.add(&s)
		}
	}
	for _, k := range n.kids {
		totals.add(m.checkNodes(t, k, height-1))
	}
	require.Equal(t, totals, n.totals)
	return &totals
}

func TestARunIsASliceOfTables(t *testing.T) {
	scale.OneGoroutine(t, "tables of one goroutine")
	property.Check(t, func(t *rapid.T) {
		m := newTreeModel()
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			m.change(t)
			m.check(t)
		}
	})
}

// A node whose children all went but a small one is merged with a neighbour, and then so is the small one.
func TestASmallOnlyChildIsMergedWhenItGetsNeighbours(t *testing.T) {
	for left := 1; left < 4; left++ {
		edit := treeEdit{level: 3, most: 8}
		var run []*Table
		for i := range 400 {
			key := keyAt(i)
			run = append(run, NewTable(manifest.Table{Num: uint64(i), Entries: 1, Smallest: key, Largest: key}))
		}
		root, err := edit.apply(nil, change{added: run})
		require.NoError(t, err)
		require.Equal(t, 3, height(root))
		gone := root.kids[0].totals.Tables - left
		root, err = edit.apply(root, change{gone: run[:gone]})
		require.NoError(t, err)
		require.Equal(t, run[gone:], (&Run{Level: 3, root: root}).Tables())
		for n := range nodesOf(root) {
			require.True(t, n == root || n.size() >= edit.most/4, "%d tables left: a node of %d", left, n.size())
		}
	}
}

// Tables that are not in order are refused wherever they meet: in a leaf, or at the border
// of two.
func TestTablesOutOfOrderAreRefused(t *testing.T) {
	table := func(num uint64, lo, hi string) *Table {
		tb := NewTable(manifest.Table{Num: num, Smallest: []byte(lo)})
		if hi != "" {
			tb.Largest = []byte(hi)
		}
		return tb
	}
	var run []*Table
	for i := range 100 {
		run = append(run, table(uint64(i), fmt.Sprintf("%03d", 2*i), fmt.Sprintf("%03d", 2*i)))
	}
	root, err := (&treeEdit{level: 1, most: 8}).apply(nil, change{added: run})
	require.NoError(t, err)
	add := func(lo, hi string) error {
		_, err := (&treeEdit{level: 1, most: 8}).apply(root, change{added: []*Table{table(1000, lo, hi)}})
		return err
	}
	for i := range 99 {
		lo, hi := fmt.Sprintf("%03d", 2*i+1), fmt.Sprintf("%03d", 2*i+2)
		require.EqualError(t, add(lo, hi), fmt.Sprintf("level 1: tables 1000 and %d overlap at %q", i+1, hi))
		require.EqualError(t, add(lo, ""), "level 1: table 1000 has no upper bound and is not the last")
	}
	require.NoError(t, add("199", ""))
}
