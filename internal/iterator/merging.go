package iterator

import (
	"encoding/binary"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/sstable"
)

// An Iter walks internal keys in order. Moves report whether it is on an entry. Keys are valid until the next move.
// Values are too, but those of memtables stay as long as the memtable is referred to.
type Iter interface {
	First() bool
	Last() bool
	SeekGE(k base.InternalKey) bool
	SeekLT(k base.InternalKey) bool
	Next() bool
	Prev() bool
	Key() base.InternalKey
	Value() []byte
	Error() error
}

// A Merging walks several sorted sequences as one. It keeps a binary heap of those that are on an entry; its root is
// the smallest key going forward, and the largest going backward. No two sequences hold the same internal key.
type Merging struct {
	Iters   []Iter        // may change before a seek, First or Last
	pass    *sstable.Pass // where reads of tables are requests; nil: elsewhere
	heap    []mergingItem
	reverse bool
	err     error
}

type mergingItem struct {
	iter   Iter
	prefix uint64           // of key: what decides most comparisons, without another load
	key    base.InternalKey // of iter, until it moves
}

// load loads the key that the item's sequence is on.
func (i *mergingItem) load() {
	i.key = i.iter.Key()
	i.prefix = KeyPrefix(i.key.User)
}

// KeyPrefix returns the first eight bytes of a key, with zeros after a shorter one, as a number that is ordered as they
// are.
func KeyPrefix(user []byte) uint64 {
	if len(user) < 8 {
		return shortPrefix(user)
	}
	return binary.BigEndian.Uint64(user)
}

func shortPrefix(user []byte) uint64 {
	var b [8]byte
	copy(b[:], user)
	return binary.BigEndian.Uint64(b[:])
}

// NewMerging returns an iterator over all that iters have.
func NewMerging(iters ...Iter) *Merging {
	return &Merging{Iters: iters, heap: make([]mergingItem, 0, len(iters))}
}

// release makes m refer to nothing. Its buffers are kept.
func (m *Merging) release() {
	clear(m.Iters)
	clear(m.heap[:cap(m.heap)])
	*m = Merging{Iters: m.Iters[:0], heap: m.heap[:0]}
}

// rebuild fills the heap with the sequences for which move finds an entry.
func (m *Merging) rebuild(reverse bool, move func(Iter) bool) bool {
	m.reverse, m.err = reverse, nil
	m.heap = m.heap[:0]
	for _, it := range m.Iters {
		if move(it) {
			m.heap = append(m.heap, mergingItem{iter: it})
			m.heap[len(m.heap)-1].load()
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

func (m *Merging) before(a, b *mergingItem) bool {
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
func (m *Merging) down(i int) {
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

// Moved puts the heap right after the root's sequence has moved: ok says that it is on an entry. Only the user of Table
// moves a sequence on its own.
func (m *Merging) Moved(ok bool) bool {
	if ok {
		m.heap[0].load()
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

// First moves to the first entry.
func (m *Merging) First() bool {
	if m.pass != nil {
		return m.rebuildFar(false, Iter.First, (*Run).coldFirst)
	}
	return m.rebuild(false, Iter.First)
}

// Last moves to the last entry.
func (m *Merging) Last() bool {
	if m.pass != nil {
		return m.rebuildFar(true, Iter.Last, (*Run).coldLast)
	}
	return m.rebuild(true, Iter.Last)
}

// SeekGE moves to the first entry at or after k.
func (m *Merging) SeekGE(k base.InternalKey) bool {
	if m.pass != nil {
		return m.rebuildFar(false, func(it Iter) bool { return it.SeekGE(k) },
			func(l *Run) bool { return l.coldGE(k) })
	}
	return m.rebuild(false, func(it Iter) bool { return it.SeekGE(k) })
}

// SeekLT moves to the last entry before k.
func (m *Merging) SeekLT(k base.InternalKey) bool {
	if m.pass != nil {
		return m.rebuildFar(true, func(it Iter) bool { return it.SeekLT(k) },
			func(l *Run) bool { return l.coldLT(k) })
	}
	return m.rebuild(true, func(it Iter) bool { return it.SeekLT(k) })
}

// Next moves to the next entry. The iterator must be on an entry and go forward: after Last, SeekLT or Prev, seek
// first, since the sequences are on the other side of the entry.
func (m *Merging) Next() bool {
	top := &m.heap[0]
	if len(m.heap) > 1 || !top.iter.Next() {
		return m.Moved(len(m.heap) > 1 && top.iter.Next())
	}
	top.key = top.iter.Key() // the only one, as in a fully compacted store: nothing to compare with
	return true
}

// Table returns the table that the entry comes from, nil if it is in none, and the first user key of all other
// sequences, nil if there is none, until one of them moves. The iterator goes forward. Its user may take steps in the
// table, which Merging does not notice: after a Step that found an entry comes Moved(true), after one that found none
// Next, or else a seek.
func (m *Merging) Table() (t *sstable.Iter, next []byte) {
	h := m.heap
	if it, ok := h[0].iter.(*Run); ok {
		t = &it.it
	}
	switch {
	case len(h) > 2 && m.before(&h[2], &h[1]):
		next = h[2].key.User
	case len(h) > 1:
		next = h[1].key.User
	}
	return t, next
}

// Prev is Next the other way round.
func (m *Merging) Prev() bool { return m.Moved(m.heap[0].iter.Prev()) }

// Valid reports whether the iterator is on an entry.
func (m *Merging) Valid() bool { return len(m.heap) > 0 }

// Key returns the key.
func (m *Merging) Key() base.InternalKey { return m.heap[0].key }

// Value returns the value.
func (m *Merging) Value() []byte { return m.heap[0].iter.Value() }

// Error returns what ended the iteration early.
func (m *Merging) Error() error { return m.err }
