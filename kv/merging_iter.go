package kv

import (
	"encoding/binary"

	"github.com/siftkv/siftkv/internal/base"
)

// A mergingIter walks several sorted sequences as one. It keeps a binary heap of
// those that are on an entry; its root is the smallest key going forward, and the
// largest going backward. No two sequences hold the same internal key.
type mergingIter struct {
	iters   []internalIter
	heap    []mergingItem
	reverse bool
	err     error
}

type mergingItem struct {
	iter   internalIter
	prefix uint64           // of key: what decides most comparisons, without another load
	key    base.InternalKey // of iter, until it moves
}

// take takes the key that the item's sequence is on.
func (i *mergingItem) take() {
	i.key = i.iter.Key()
	i.prefix = mergingPrefix(i.key.User)
}

// mergingPrefix returns the first eight bytes of a key, with zeros behind a shorter one,
// as a number that is ordered as they are.
func mergingPrefix(user []byte) uint64 {
	if len(user) >= 8 {
		return binary.BigEndian.Uint64(user)
	}
	var b [8]byte
	copy(b[:], user)
	return binary.BigEndian.Uint64(b[:])
}

func newMergingIter(iters ...internalIter) *mergingIter {
	return &mergingIter{iters: iters, heap: make([]mergingItem, 0, len(iters))}
}

// reset makes m an iterator over iters, which it keeps.
func (m *mergingIter) reset(iters []internalIter) {
	clear(m.heap[:cap(m.heap)])
	*m = mergingIter{iters: iters, heap: m.heap[:0]}
}

// rebuild fills the heap with the sequences for which move finds an entry.
func (m *mergingIter) rebuild(reverse bool, move func(internalIter) bool) bool {
	m.reverse, m.err = reverse, nil
	m.heap = m.heap[:0]
	for _, it := range m.iters {
		if move(it) {
			m.heap = append(m.heap, mergingItem{iter: it})
			m.heap[len(m.heap)-1].take()
		} else if err := it.Error(); err != nil {
			m.err = err
		}
	}
	if m.err != nil {
		m.heap = m.heap[:0]
		return false
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return len(m.heap) > 0
}

func (m *mergingIter) before(a, b *mergingItem) bool {
	if a.prefix != b.prefix {
		return (a.prefix < b.prefix) != m.reverse
	}
	c := base.Compare(a.key, b.key)
	if m.reverse {
		return c > 0
	}
	return c < 0
}

// down lets the item at i sink to its place.
func (m *mergingIter) down(i int) {
	h := m.heap
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && m.before(&h[child+1], &h[child]) {
			child++
		}
		if !m.before(&h[child], &h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// moved puts the heap right after the root's sequence has moved.
func (m *mergingIter) moved(ok bool) bool {
	if ok {
		m.heap[0].take()
	} else {
		if err := m.heap[0].iter.Error(); err != nil {
			m.err = err
			m.heap = m.heap[:0]
			return false
		}
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	}
	m.down(0)
	return len(m.heap) > 0
}

func (m *mergingIter) First() bool { return m.rebuild(false, internalIter.First) }
func (m *mergingIter) Last() bool  { return m.rebuild(true, internalIter.Last) }

func (m *mergingIter) SeekGE(k base.InternalKey) bool {
	return m.rebuild(false, func(it internalIter) bool { return it.SeekGE(k) })
}

func (m *mergingIter) SeekLT(k base.InternalKey) bool {
	return m.rebuild(true, func(it internalIter) bool { return it.SeekLT(k) })
}

// Next moves to the next entry. The iterator must be on an entry and go forward:
// after Last, SeekLT or Prev a seek comes first, since the sequences stand on the
// other side of the entry.
func (m *mergingIter) Next() bool {
	top := &m.heap[0]
	if len(m.heap) > 1 || !top.iter.Next() {
		return m.moved(len(m.heap) > 1 && top.iter.Next())
	}
	top.key = top.iter.Key() // alone, as in a settled store: nothing to compare with
	return true
}

// alone returns the sequence of a sorted run if that is all that is left; else nil.
func (m *mergingIter) alone() *runIter {
	if len(m.heap) != 1 {
		return nil
	}
	l, _ := m.heap[0].iter.(*runIter)
	return l
}

// Prev is Next the other way round.
func (m *mergingIter) Prev() bool { return m.moved(m.heap[0].iter.Prev()) }

func (m *mergingIter) Valid() bool           { return len(m.heap) > 0 }
func (m *mergingIter) Key() base.InternalKey { return m.heap[0].key }
func (m *mergingIter) Value() []byte         { return m.heap[0].iter.Value() }
func (m *mergingIter) Error() error          { return m.err }
