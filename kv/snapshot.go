package kv

import (
	"slices"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/counters"
)

// A Snapshot is the store as it was at one moment. Nothing that it sees is
// dropped before it is closed. It is safe for concurrent use.
type Snapshot struct {
	view   readView
	closed atomic.Bool

	// Of a store that follows a writer, which knows nothing of snapshots here: the
	// state, referred to on its stripe. Otherwise nil.
	pinned *readState
	stripe int
}

// NewSnapshot returns a snapshot of the present. Close it: while it is open, old
// versions of keys pile up. It returns a closed snapshot if the store is closed.
func (d *DB) NewSnapshot() *Snapshot {
	s := &Snapshot{view: readView{d: d}}
	s.view.snap = s
	if d.closed.Load() || d.follower != nil && !s.pin() {
		s.closed.Store(true)
		return s
	}
	d.mu.Lock()
	if s.pinned == nil {
		s.view.at = d.seq()
	}
	d.snapshots.add(s.view.at)
	d.mu.Unlock()
	d.handles.snapshots.Add(s, d.opts.TraceOpens, 1)
	return s
}

// moveTo makes a snapshot of a view, which no reader has yet, one of the store at write at. It reports false if the
// view does not go back to it: its tables may have dropped older versions.
func (s *Snapshot) moveTo(at base.SeqNum) bool {
	ok := s.pinned != nil && at >= s.pinned.version.LastSeq && at <= s.view.at
	if ok {
		s.view.at = at // what it needs is pinned
	}
	return ok
}

// Close releases the snapshot. A second Close does nothing.
func (s *Snapshot) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.view.d.handles.snapshots.Remove(s, s.view.d.opts.TraceOpens)
	s.view.d.mu.Lock()
	if s.pinned == nil {
		s.view.d.snapshots.remove(s.view.at)
	} else { // moveTo may have changed the other
		s.view.d.snapshots.remove(s.pinned.limit)
	}
	s.view.d.mu.Unlock()
	s.unpin()
	s.view.d.scheduleCompactions()
	return nil
}

// Get is DB.Get as of the snapshot.
func (s *Snapshot) Get(key []byte) ([]byte, error) { return s.AppendGet(nil, key) }

// AppendGet is DB.AppendGet as of the snapshot.
func (s *Snapshot) AppendGet(dst, key []byte) ([]byte, error) { return s.view.get(dst, key) }

// Has is DB.Has as of the snapshot.
func (s *Snapshot) Has(key []byte) (bool, error) { return s.view.has(key) }

// NewIter is DB.NewIter as of the snapshot. The iterator may outlive it.
func (s *Snapshot) NewIter(o *IterOptions) (*Iterator, error) { return s.view.iter(o, nil) }

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

func (l *snapshotList) oldest() base.SeqNum {
	if len(l.list) == 0 {
		return base.MaxSeqNum // none holds anything
	}
	return l.list[0]
}

// A snapshot of a store that follows a writer keeps the state that it was taken of: the writer drops what its own
// snapshots do not need. A transaction of such a store reads through a snapshot of this kind.

// pin refers to the current state. It reports false if the store is closed.
func (s *Snapshot) pin() bool {
	s.stripe = int(s.view.d.counters.Iterators.Add(1)) & (counters.NumStripes - 1)
	s.pinned = s.view.d.acquire(s.stripe)
	if s.pinned == nil {
		return false
	}
	s.view.at = s.pinned.limit
	return true
}

// unpin releases the state. Without one it does nothing.
func (s *Snapshot) unpin() {
	if s != nil && s.pinned != nil {
		s.closed.Store(true)
		s.pinned.release(s.stripe)
	}
}

// join takes another reference of the state, on the snapshot's own stripe. So a
// goroutine that finds the state unused has seen this reference, or came before the
// snapshot's was released. It reports false if the snapshot or the store is closed.
func (s *Snapshot) join() bool {
	s.pinned.refs[s.stripe].n.Add(1)
	if s.closed.Load() || s.view.d.closed.Load() {
		s.pinned.release(s.stripe)
		return false
	}
	return true
}
