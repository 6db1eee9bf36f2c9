package memtable

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
)

// A splice is where a new node goes: on each level between two neighbours.
type splice struct {
	before, after [maxHeight]node
	duplicate     bool // the key is in the list already, at after[0]
}

// seek returns the last node before k, which may be head, and the first at or after it.
func (m *Memtable) seek(k base.InternalKey) (before, after node) {
	prefix := keyPrefix(k.User)
	before, after = head, nilNode
	for level := int(m.height.Load()) - 1; level >= 0; level-- {
		before, after = m.walk(before, after, prefix, k, level)
	}
	return before, after
}

// last returns the last node, which may be head.
func (m *Memtable) last() node {
	n := head
	for level := int(m.height.Load()) - 1; level >= 0; level-- {
		at := linkAt(level)
		for next := loadLink(m.arena, n, at); next != nilNode; next = loadLink(m.arena, n, at) {
			n = next
		}
	}
	return n
}

// before returns the node before n, which may be head. A node's prev word names some node before it: at first its
// neighbour when it was linked. A walk along level 0 passes entries inserted since, and leaves a better one behind. Any
// store to prev that names a node before n is right, in whatever order stores arrive.
func (m *Memtable) before(n node) node {
	start := m.hint(n)
	p := start
	for next := m.next(p); next != n; next = m.next(p) {
		p = next
	}
	if p != start {
		m.setHint(n, p)
	}
	return p
}

// walk goes along one level from n, which is before k, and returns the neighbours between which k belongs. It takes
// known for at or after k: what ended the level above ends this one too, and is not compared again.
func (m *Memtable) walk(n, known node, prefix uint64, k base.InternalKey, level int) (before, after node) {
	arena, at, below := m.arena, linkAt(level), linkAt(max(level-1, 0))
	for {
		next := loadLink(arena, n, at)
		word(arena, loadLink(arena, n, below), keyField).Load() // the search mostly goes there next
		if next == known || next == nilNode {
			return n, next
		}
		if p := loadPrefix(arena, next); p > prefix || p == prefix && !m.lessTied(next, k) {
			return n, next
		}
		n = next
	}
}

// lessTied reports whether a node's key is before k, when their prefixes are equal.
func (m *Memtable) lessTied(n node, k base.InternalKey) bool {
	if c := bytes.Compare(m.user(n), k.User); c != 0 {
		return c < 0
	}
	return m.trailer(n) > k.Trailer
}

// find fills in the splice of p.
func (m *Memtable) find(p *insert) {
	n, after := head, nilNode
	for level := int(m.height.Load()) - 1; level >= 0; level-- {
		n, after = m.walk(n, after, p.prefix, p.k, level)
		if level < p.height {
			p.splice.before[level], p.splice.after[level] = n, after
		}
	}
}

// findNewer is find, on level 0 alone, for a version newer than all of its key: its place is known from the one that
// was the newest until now. It reports false if there is no such, or if others are at work in the same place.
func (m *Memtable) findNewer(p *insert) bool {
	after, _ := m.indexed(p.k.User, p.hash)
	if after == nilNode || m.trailer(after) >= p.k.Trailer {
		return false
	}
	before := m.before(after)
	if before != head && base.Compare(m.key(before), p.k) >= 0 {
		return false // a newer version still; its Add has not returned
	}
	p.splice.before[0], p.splice.after[0] = before, after
	return true
}

// findEnd is find for a key after all others, as those of an ascending load are: it takes a step per level, whatever
// the table's size. It reports false for other keys, and if the hint at the last node of level 0 is out of date.
func (m *Memtable) findEnd(p *insert) bool {
	for level := range p.height {
		n := node(m.tails[level].Load())
		if level == 0 && m.next(n) != nilNode || n != head && base.Compare(m.key(n), p.k) >= 0 {
			return false
		}
		p.splice.before[level], p.splice.after[level] = m.walk(n, nilNode, p.prefix, p.k, level)
	}
	return true
}

// link puts a node between its neighbours on one level. It reports false if they are no longer neighbours. On level 0
// it looks for a duplicate first: no key can come between the look and a swap that succeeds.
func (m *Memtable) link(n node, level int, s *splice) bool {
	before, after := s.before[level], s.after[level]
	if level == 0 {
		if after != nilNode && m.trailer(after) == m.trailer(n) && string(m.user(after)) == string(m.user(n)) {
			s.duplicate = true
			return true
		}
		m.write(n, prevField, before)
	}
	at := linkAt(level)
	m.write(n, at, after)
	if !word(m.arena, before, at).CompareAndSwap(uint32(after), uint32(n)) {
		return false
	}
	if after == nilNode {
		m.tails[level].Store(uint32(n))
	} else if level == 0 {
		m.setHint(after, n)
	}
	return true
}
