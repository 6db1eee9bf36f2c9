package kv

import "github.com/siftkv/siftkv/filterpolicy"

// A snapshot of a store that follows a writer keeps the state that it was taken of:
// the writer drops what its own snapshots do not need. A transaction of such a store
// reads through a snapshot of this kind.

// pin refers to the current state. It reports false if the store is closed.
func (s *Snapshot) pin() bool {
	s.stripe = int(s.db.counters.iterators.Add(1)) & (numStripes - 1)
	s.pinned = s.db.acquire(s.stripe)
	if s.pinned == nil {
		return false
	}
	s.seq = s.pinned.limit
	return true
}

// unpin gives the state back. Without one it does nothing.
func (s *Snapshot) unpin() {
	if s != nil && s.pinned != nil {
		s.closed.Store(true)
		s.db.release(s.pinned, s.stripe)
	}
}

// join takes another reference of the state: on the snapshot's own stripe, so that
// whoever finds the state unused has seen this reference or came before the
// snapshot's was given back. It reports false if the snapshot or the store is closed.
func (s *Snapshot) join() bool {
	s.pinned.refs[s.stripe].n.Add(1)
	if s.closed.Load() || s.db.closed.Load() {
		s.db.release(s.pinned, s.stripe)
		return false
	}
	return true
}

// getPinned is DB.get in the state.
func (s *Snapshot) getPinned(dst, key []byte, want bool) ([]byte, bool, error) {
	if !s.join() {
		return dst, false, ErrClosed
	}
	defer s.db.release(s.pinned, s.stripe)
	l := lookup{d: s.db, key: key, hash: filterpolicy.Hash(key), at: s.seq, want: want,
		stripe: &s.db.counters.stripes[s.stripe]}
	l.stripe.gets.Add(1)
	ok, err := l.run(s.pinned)
	if ok && want {
		if dst = append(dst, l.value...); dst == nil {
			dst = []byte{}
		}
	}
	if t := s.db.tracer.Load(); t != nil {
		t.note(&l, ok, err)
	}
	return dst, ok, err
}

// iterPinned is DB.newIter on the state.
func (s *Snapshot) iterPinned(o *IterOptions, own *txView) (*Iterator, error) {
	if !s.join() {
		return nil, ErrClosed
	}
	return s.db.iterOn(s.pinned, s.stripe, s.seq, o, own)
}
