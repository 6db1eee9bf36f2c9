package kv

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/counters"
)

// A Snapshot is the store as it was at one moment. Nothing that it sees is
// dropped before it is closed. It is safe for concurrent use.
type Snapshot struct {
	db     *DB
	seq    base.SeqNum
	closed atomic.Bool

	// Of a store that follows a writer, which knows nothing of snapshots here: the
	// state, referred to on its stripe. Otherwise nil.
	pinned *readState
	stripe int
}

// NewSnapshot returns a snapshot of the present. Close it: while it is open, old
// versions of keys pile up. It returns a closed snapshot if the store is closed.
func (d *DB) NewSnapshot() *Snapshot {
	s := &Snapshot{db: d}
	if d.closed.Load() {
		s.closed.Store(true)
		return s
	}
	if d.follower != nil && !s.pin() {
		s.closed.Store(true)
		return s
	}
	d.mu.Lock()
	if s.pinned == nil {
		s.seq = d.seq()
	}
	d.snapshots.add(s.seq)
	d.mu.Unlock()
	d.openSnapshots.Add(s, d.opts.TraceOpens, 1)
	return s
}

// Close releases the snapshot. A second Close does nothing.
func (s *Snapshot) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.db.openSnapshots.Remove(s, s.db.opts.TraceOpens)
	s.db.mu.Lock()
	s.db.snapshots.remove(s.seq)
	s.db.mu.Unlock()
	s.unpin()
	s.db.scheduleCompactions()
	return nil
}

// Get is DB.Get as of the snapshot.
func (s *Snapshot) Get(key []byte) ([]byte, error) { return s.AppendGet(nil, key) }

// AppendGet is DB.AppendGet as of the snapshot.
func (s *Snapshot) AppendGet(dst, key []byte) ([]byte, error) {
	return orNotFound(s.get(dst, key, true))
}

// Has is DB.Has as of the snapshot.
func (s *Snapshot) Has(key []byte) (bool, error) {
	_, ok, err := s.get(nil, key, false)
	return ok, err
}

// get is DB.get as of the snapshot.
func (s *Snapshot) get(dst, key []byte, want bool) ([]byte, bool, error) {
	if s.closed.Load() {
		return dst, false, ErrClosed
	}
	if s.pinned != nil {
		return s.getPinned(dst, key, want)
	}
	got, ok, err := s.db.get(dst, key, s.seq, want)
	if s.closed.Load() { // meanwhile: what it should see may have been dropped
		return dst, false, ErrClosed
	}
	return got, ok, err
}

// NewIter is DB.NewIter as of the snapshot. The iterator may outlive it.
func (s *Snapshot) NewIter(o *IterOptions) (*Iterator, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	if s.pinned != nil {
		return s.iterPinned(o, nil)
	}
	it, err := s.db.newIter(o, s.seq, nil)
	if err == nil && s.closed.Load() {
		return nil, errors.Join(ErrClosed, it.Close())
	}
	return it, err
}

// A snapshotList is the sequence numbers of open snapshots, ascending.
type snapshotList struct{ list []base.SeqNum }

func (l *snapshotList) add(seq base.SeqNum) { l.list = append(l.list, seq) }

func (l *snapshotList) remove(seq base.SeqNum) {
	switch i, ok := slices.BinarySearch(l.list, seq); {
	case !ok:
	case i == 0: // most are closed in the order in which they were opened
		l.list = l.list[1:]
	default:
		l.list = slices.Delete(l.list, i, i+1)
	}
}

// seqs returns the distinct sequence numbers, in a slice of the caller's.
func (l *snapshotList) seqs() []base.SeqNum { return slices.Compact(slices.Clone(l.list)) }

func (l *snapshotList) oldest() (base.SeqNum, bool) {
	if len(l.list) == 0 {
		return 0, false
	}
	return l.list[0], true
}

// A snapshot of a store that follows a writer keeps the state that it was taken of:
// the writer drops what its own snapshots do not need. A transaction of such a store
// reads through a snapshot of this kind.

// pin refers to the current state. It reports false if the store is closed.
func (s *Snapshot) pin() bool {
	s.stripe = int(s.db.counters.Iterators.Add(1)) & (counters.NumStripes - 1)
	s.pinned = s.db.acquire(s.stripe)
	if s.pinned == nil {
		return false
	}
	s.seq = s.pinned.limit
	return true
}

// unpin releases the state. Without one it does nothing.
func (s *Snapshot) unpin() {
	if s != nil && s.pinned != nil {
		s.closed.Store(true)
		s.db.release(s.pinned, s.stripe)
	}
}

// join takes another reference of the state, on the snapshot's own stripe. So a
// goroutine that finds the state unused has seen this reference, or came before the
// snapshot's was released. It reports false if the snapshot or the store is closed.
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
	began := s.db.counters.Latencies.Begin(counters.Get)
	l := lookup{d: s.db, key: key, hash: filterpolicy.Hash(key), at: s.seq, want: want, dst: dst,
		stripe: &s.db.counters.Stripes[s.stripe]}
	l.count()
	ok, err := l.run(s.pinned)
	if ok && want {
		dst = l.appendValue(dst)
	}
	if s.db.watch.wants(l.hash) {
		s.db.watch.lookup(&l, ok, err)
	}
	s.db.counters.Latencies.End(counters.Get, began)
	return dst, ok, err
}

// iterPinned is DB.newIter on the state.
func (s *Snapshot) iterPinned(o *IterOptions, own *txView) (*Iterator, error) {
	if !s.join() {
		return nil, ErrClosed
	}
	return s.db.iterOn(s.pinned, s.stripe, s.seq, o, own), nil
}
