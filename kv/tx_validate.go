package kv

import (
	"bytes"
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/readset"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
)

// The store itself tells whether something was written after a transaction's snapshot. There is no table of recent
// writes, and a write that is no transaction's costs nothing. The open snapshot keeps compaction from dropping the
// newest version of a key after it, tombstones included, and from taking its sequence number away. So what was written
// later is in a memtable, or in a table whose largest sequence number says so.
//
// It is asked twice. First by the committing goroutine, for all writes that are visible then; that may read files, and
// nothing waits for it. Then by the leader of the commit pipeline, between groups, for the few writes that came in
// between. It also looks at the earlier batches of its group, which are in no memtable yet. The leader refuses a
// transaction before anything of it is in the log; the others of the group share its sync as ever.

// A txReads is what a transaction has read.
type txReads struct {
	readset.Tracker
	db    *DB
	since base.SeqNum // the write up to which it was found valid
}

// Validate returns ErrConflict if something of the set was written after r.since. The
// newest write that counts is last. With ValidateIn, it is what the pipeline asks.
func (r *txReads) Validate(last base.SeqNum) error {
	if last == r.since {
		return nil
	}
	const stripe = 0
	s := r.db.acquire(stripe)
	if s == nil {
		return r.db.unreadable()
	}
	defer r.db.release(s, stripe)
	return r.conflict(r.db.later(s, r.since))
}

// ValidateIn returns ErrConflict if something of the set is in m.
func (r *txReads) ValidateIn(m *memTable) error {
	return r.conflict(&laterWrites{since: r.since, mems: []*memTable{m}})
}

// conflict returns ErrConflict, and what it is about, if something of the set is among the later writes.
func (r *txReads) conflict(l *laterWrites) error {
	if len(l.mems)+len(l.tables) == 0 {
		return nil
	}
	var key []byte
	for k := range r.Keys {
		key = append(key[:0], k...)
		if found, err := l.key(key); err != nil {
			return err
		} else if found {
			return fmt.Errorf("%w: key %.64q", ErrConflict, key)
		}
	}
	for _, s := range r.Spans {
		if found, err := l.span(s); err != nil {
			return err
		} else if found {
			return fmt.Errorf("%w: a key at or after %.64q, in a range that was scanned", ErrConflict, s.Lo)
		}
	}
	return nil
}

// A laterWrites looks for writes after write since, deletions included, where there may be any.
type laterWrites struct {
	d      *DB
	since  base.SeqNum
	mems   []*memTable
	tables []*version.Table
}

// later returns the later writes of a state, which stays acquired meanwhile.
func (d *DB) later(s *readState, since base.SeqNum) *laterWrites {
	l := &laterWrites{d: d, since: since, mems: []*memTable{s.mem}}
	for _, m := range s.imms {
		if last := m.LastSeq.Load(); last == 0 || last > uint64(since) {
			l.mems = append(l.mems, m)
		}
	}
	if s.version.LargestSeq <= since {
		return l
	}
	l.tables = s.version.WrittenAfter(since)
	return l
}

// key reports whether a key was written.
func (l *laterWrites) key(key []byte) (bool, error) {
	hash := filterpolicy.Hash(key)
	for _, m := range l.mems {
		if _, t, ok := m.Get(key, hash, base.MaxSeqNum); ok && t.SeqNum() > l.since ||
			m.Tombstones().Cover(key, base.MaxSeqNum) > l.since {
			return true, nil
		}
	}
	for _, t := range l.tables {
		if !t.Contains(key) {
			continue
		}
		r, err := t.Open(&l.d.tables)
		if err != nil {
			return false, err
		}
		if r.Tombstones().Cover(key, base.MaxSeqNum) > l.since {
			return true, nil
		}
		p := sstable.Probe{SkipValue: true} // not counted: no caller looks this key up
		if _, t, ok, err := r.Find(nil, key, hash, base.MaxSeqNum, &p); err != nil || ok && t.SeqNum() > l.since {
			return err == nil, err
		}
	}
	return false, nil
}

// span reports whether a key of a span was written. It goes through all that the
// memtables and the tables with later writes have of it.
func (l *laterWrites) span(s version.Span) (bool, error) {
	for _, m := range l.mems {
		if m.Tombstones().NewestIn(s.Lo, s.Hi) > l.since {
			return true, nil
		}
		if m.HasPoints() && l.among(m.NewIter(), s) {
			return true, nil
		}
	}
	for _, t := range l.tables {
		if !t.Overlaps(s.Lo, s.Hi) {
			continue
		}
		r, err := t.Open(&l.d.tables)
		if err != nil {
			return false, err
		}
		if r.Tombstones().NewestIn(s.Lo, s.Hi) > l.since {
			return true, nil
		}
		it := r.NewIter(sstable.IterOptions{})
		if l.among(it, s) {
			return true, nil
		}
		if err := it.Error(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// among reports whether an iterator has a later write of a key of a span.
func (l *laterWrites) among(it iterator.Iter, s version.Span) bool {
	for ok := it.SeekGE(base.SearchKey(s.Lo, base.MaxSeqNum)); ok; ok = it.Next() {
		k := it.Key()
		if s.Hi != nil && bytes.Compare(k.User, s.Hi) >= 0 {
			return false
		}
		if k.SeqNum() > l.since {
			return true
		}
	}
	return false
}
