package memtable

import "github.com/siftkv/siftkv/internal/base"

// An Iter walks a memtable in both directions. It sees every entry that was there when it passed by, and may see those
// that are added meanwhile; readers tell them by their sequence numbers.
//
// Moves report whether the iterator is on an entry. When it is on none, before its first move or after a walk past
// either end, Next and Prev stay there and report false: First, Last or a seek brings it back. An Iter is for one
// goroutine, needs no closing, and may be copied.
type Iter struct {
	m     *Memtable
	n     node // nilNode: on no entry
	folds bool // are entries, see KindFold
}

// NewIter returns an iterator over the points that is on no entry.
func (m *Memtable) NewIter() *Iter { return &Iter{m: m} }

// InitWithFolds makes it an iterator of m that is on no entry, and returns folds too. One may be used again and again.
func (it *Iter) InitWithFolds(m *Memtable) { *it = Iter{m: m, folds: true} }

// First goes to the first entry.
func (it *Iter) First() bool { return it.forward(it.m.next(head)) }

// Last goes to the last entry.
func (it *Iter) Last() bool { return it.backward(it.m.last()) }

// SeekGE goes to the first entry at or after k.
func (it *Iter) SeekGE(k base.InternalKey) bool {
	_, n := it.m.seek(k)
	return it.forward(n)
}

// SeekLT goes to the last entry before k.
func (it *Iter) SeekLT(k base.InternalKey) bool {
	n, _ := it.m.seek(k)
	return it.backward(n)
}

// SeekVersion goes to the newest version of a user key at or below seq, and to no
// entry if there is none. Its hash and costs are those of Get.
func (it *Iter) SeekVersion(user []byte, hash uint64, seq base.SeqNum) bool {
	return it.forward(it.m.newest(user, hash, seq))
}

// Next goes to the next entry.
func (it *Iter) Next() bool {
	if it.n == nilNode {
		return false
	}
	return it.forward(it.m.next(it.n))
}

// Prev goes to the previous entry.
func (it *Iter) Prev() bool {
	if it.n == nilNode {
		return false
	}
	return it.backward(it.m.before(it.n))
}

// Key returns the key of the entry that the iterator is on, or the zero key. Its bytes belong to the memtable and must
// not be modified; they stay valid after a move.
func (it *Iter) Key() base.InternalKey {
	if it.n == nilNode {
		return base.InternalKey{}
	}
	return it.m.key(it.n)
}

// Value returns the value of the entry that the iterator is on, or nil, on the terms of Key.
func (it *Iter) Value() []byte {
	if it.n == nilNode {
		return nil
	}
	return it.m.value(it.n)
}

// forward goes to n, or past it if it is a fold and the iterator skips those. A fold is never the
// last entry: the versions in it follow.
func (it *Iter) forward(n node) bool {
	for it.passes(n) {
		n = it.m.next(n)
	}
	it.n = n
	return n != nilNode
}

// backward is forward in the other direction, in which head ends the list.
func (it *Iter) backward(n node) bool {
	for it.passes(n) {
		n = it.m.before(n)
	}
	if n == head {
		n = nilNode
	}
	it.n = n
	return n != nilNode
}

func (it *Iter) passes(n node) bool {
	return !it.folds && it.m.folded.Load() && n != nilNode && n != head && it.m.trailer(n).Kind() == KindFold
}

// Error returns nil: an iterator of a memtable cannot fail.
func (*Iter) Error() error { return nil }
