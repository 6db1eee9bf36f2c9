package rangedel

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/siftkv/siftkv/internal/base"
)

// A History is the range tombstones of a memtable, as of every sequence number. It is immutable and safe for concurrent
// use: Add returns the next one, which shares all of it except O(log n). A nil History is empty.
//
// It is a tree of spans that do not overlap, each with the newest tombstone over it. A new
// tombstone replaces all that it covers; that hangs under it, for readers of earlier states. So n
// tombstones take O(n) memory, in any nesting, and a reader of the newest state does one search.
//
// Add notes a tombstone; the first reader puts it into the tree, with all that were noted before.
// Adding many at once copies each node once, not once for each.
type History struct {
	base    *node                // without the newest tombstones
	pending int                  // how many those are
	whole   atomic.Pointer[node] // with them; nil until a reader asks
	last    *added               // the newest
	count   int
	bytes   int // of all keys
}

// maxPending is the number of pending tombstones at which Add puts them into the tree: it
// bounds what the first reader takes.
const maxPending = 512

// An added is a tombstone as it was added, and the one before.
type added struct {
	Tombstone
	before *added
}

// A node is a span and the newest tombstone over it. The tree is ordered by keys, and a
// heap by weights, which are drawn at random: that keeps it O(log n) deep, expected.
type node struct {
	start, end  []byte // end nil: no bound
	seq         base.SeqNum
	left, right *node
	under       *node  // what was there before, of [start, end) at least
	jump        *node  // where under is one node: it, or one further down; see stack
	depth       uint32 // how many nodes jump and what is under it lead through
	weight      uint32
	owner       uint32 // History.count of the build that made the node and may still change it
}

// TombstoneSize returns the most memory that a tombstone with such keys takes in a
// History: a tombstone within another makes three nodes, one of which was there before.
func TombstoneSize(startLen, endLen int) int {
	return sizePerTombstone + startLen + endLen
}

const sizePerTombstone = 3*int(unsafe.Sizeof(node{})) + int(unsafe.Sizeof(added{}))

// Add returns the history with ts, tombstones of one batch: only the newest over a key counts. They are newer than all
// in h. It keeps their slices. It takes O(1) for each, and O(log n) now and then.
func (h *History) Add(ts []Tombstone) *History {
	next := &History{}
	if h != nil {
		next.base, next.pending, next.last, next.count, next.bytes = h.base, h.pending, h.last, h.count, h.bytes
		if whole := h.whole.Load(); whole != nil {
			next.base, next.pending = whole, 0
		}
	}
	if len(ts) > 1 {
		ts = Newest(ts)
	}
	for _, t := range ts {
		if t.Empty() {
			continue
		}
		if t.Start == nil {
			t.Start = []byte{}
		}
		next.count++
		next.pending++
		next.bytes += len(t.Start) + len(t.End)
		next.last = &added{t, next.last}
	}
	if next.count == 0 {
		return nil
	}
	if next.pending >= maxPending {
		next.base, next.pending = next.build(), 0
	}
	return next
}

func (h *History) tree() *node {
	if h.pending == 0 {
		return h.base
	}
	whole := h.whole.Load()
	if whole == nil {
		whole = h.build() // another reader may do the same: either tree will do
		h.whole.Store(whole)
	}
	return whole
}

// build returns the base with the pending tombstones.
func (h *History) build() *node {
	pending := make([]*added, h.pending)
	last := h.last
	for i := range pending {
		pending[len(pending)-1-i], last = last, last.before
	}
	root, e := h.base, editor(h.count)
	for _, t := range pending {
		root = e.put(root, t.Tombstone)
	}
	return root
}

// stack puts n on top of one node. A range, or the head of a queue, that is deleted again and again makes a stack of
// them. A reader of an old state has to go down all of it; jumps take it down in O(log n) (E. Myers, "An applicative
// random-access stack", 1983). What is outside of a node on the way has nothing under it either.
func (n *node) stack(m *node) {
	n.depth, n.jump = m.depth+1, m
	if j := m.jump; j != nil && j.jump != nil && m.depth-j.depth == j.depth-j.jump.depth {
		n.jump = j.jump
	}
}

// below returns where to look for what is under n and visible at at, which n is not.
func (n *node) below(at base.SeqNum) *node {
	if n.jump != nil && n.jump.seq > at {
		return n.jump
	}
	return n.under
}

// An editor changes a tree for the tombstones of a build: it copies nodes that others may see.
type editor uint32

// put returns the tree with t, which is newer than all in it.
func (e editor) put(root *node, t Tombstone) *node {
	before, rest := e.split(root, t.Start)
	under, after := rest, (*node)(nil)
	if t.End != nil {
		under, after = e.split(rest, t.End)
	}
	n := &node{start: t.Start, end: t.End, seq: t.Seq, under: under, weight: rand.Uint32(), owner: uint32(e)}
	if under != nil && under.left == nil && under.right == nil {
		n.stack(under)
	}
	return e.join(e.join(before, n), after)
}

func (e editor) own(n *node) *node {
	if n.owner == uint32(e) {
		return n
	}
	c := *n
	c.owner = uint32(e)
	return &c
}

// split returns what is before key of a tree, and what is not.
func (e editor) split(n *node, key []byte) (before, from *node) {
	switch {
	case n == nil:
		return nil, nil
	case n.end != nil && bytes.Compare(n.end, key) <= 0:
		n = e.own(n)
		n.right, from = e.split(n.right, key)
		return n, from
	case bytes.Compare(n.start, key) >= 0:
		n = e.own(n)
		before, n.left = e.split(n.left, key)
		return before, n
	}
	// The span is cut in two. A weight of its own for the second part keeps the tree
	// balanced where one tombstone is cut again and again.
	right := n.right
	tail := &node{start: key, end: n.end, seq: n.seq, under: n.under, jump: n.jump, depth: n.depth,
		weight: rand.Uint32(), owner: uint32(e)}
	n = e.own(n)
	n.end, n.right = key, nil
	return n, e.join(tail, right)
}

// join returns a tree of two, of which a is before b.
func (e editor) join(a, b *node) *node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.weight >= b.weight:
		a = e.own(a)
		a.right = e.join(a.right, b)
		return a
	}
	b = e.own(b)
	b.left = e.join(a, b.left)
	return b
}

// Empty reports whether there is no tombstone.
func (h *History) Empty() bool { return h == nil }

// Size returns the most memory that the tombstones take.
func (h *History) Size() int {
	if h == nil {
		return 0
	}
	return h.count*sizePerTombstone + h.bytes
}

// Cover returns the newest sequence number, at or below at, of a tombstone over key; 0
// if there is none. It takes O(log n) if at is not before the newest tombstone over key.
// Otherwise it goes down through those that are newer, fast where each is over one other.
func (h *History) Cover(key []byte, at base.SeqNum) base.SeqNum {
	if h == nil {
		return 0
	}
	for n := h.tree(); n != nil; {
		switch {
		case bytes.Compare(key, n.start) < 0:
			n = n.left
		case n.end != nil && bytes.Compare(n.end, key) <= 0:
			n = n.right
		case n.seq <= at:
			return n.seq
		default:
			n = n.below(at)
		}
	}
	return 0
}

// Span is Cover that also returns a span around key, of which all keys have the same
// cover. A nil start or end has no bound.
func (h *History) Span(key []byte, at base.SeqNum) (start, end []byte, seq base.SeqNum) {
	if h == nil {
		return nil, nil, 0
	}
	for n := h.tree(); n != nil; {
		switch {
		case bytes.Compare(key, n.start) < 0:
			end = smallerEnd(end, n.start)
			n = n.left
			continue
		case n.end != nil && bytes.Compare(n.end, key) <= 0:
			start = largerStart(start, n.end)
			n = n.right
			continue
		}
		start, end = largerStart(start, n.start), smallerEnd(end, n.end)
		if n.seq <= at {
			return start, end, n.seq
		}
		n = n.below(at)
	}
	return start, end, 0
}

func smallerEnd(a, b []byte) []byte {
	if CompareEnds(b, a) < 0 {
		return b
	}
	return a
}

func largerStart(a, b []byte) []byte {
	if bytes.Compare(b, a) > 0 {
		return b
	}
	return a
}

// NewestIn returns the newest sequence number of a tombstone over any key of [lo, hi), where a nil hi has no bound; 0
// if there is none. It takes O(log n) and a step for each span.
func (h *History) NewestIn(lo, hi []byte) base.SeqNum {
	if h == nil || (Tombstone{Start: lo, End: hi}).Empty() {
		return 0
	}
	return h.tree().newestIn(lo, hi)
}

func (n *node) newestIn(lo, hi []byte) base.SeqNum {
	switch {
	case n == nil:
		return 0
	case n.end != nil && bytes.Compare(n.end, lo) <= 0:
		return n.right.newestIn(lo, hi)
	case CompareEnds(n.start, hi) >= 0:
		return n.left.newestIn(lo, hi)
	}
	return max(n.seq, n.left.newestIn(lo, hi), n.right.newestIn(lo, hi))
}

// AppendAll appends all tombstones to dst, the newest first, as they were added.
func (h *History) AppendAll(dst []Tombstone) []Tombstone {
	if h == nil {
		return dst
	}
	dst = slices.Grow(dst, h.count)
	for t := h.last; t != nil; t = t.before {
		dst = append(dst, t.Tombstone)
	}
	return dst
}
