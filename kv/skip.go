package kv

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/sstable"
)

// An iterator that meets an entry under a range tombstone need not go through all
// entries under it one by one. Where every entry of a table is older than the
// tombstone, the table's iterator jumps to the tombstone's end: a range that was
// deleted costs a scan one step per table, however many keys it had.

// A skipper can jump over a range of keys if all that it holds of them is older
// than a sequence number. It reports whether it did, and whether it is on an entry
// then.
type skipper interface {
	skipForward(end []byte, seq base.SeqNum) (on, skipped bool)    // to end; nil: over everything
	skipBackward(start []byte, seq base.SeqNum) (on, skipped bool) // to before start
}

// skipForward is Next that jumps if it can.
func (m *mergingIter) skipForward(end []byte, seq base.SeqNum) bool {
	if s, ok := m.heap[0].iter.(skipper); ok {
		if on, skipped := s.skipForward(end, seq); skipped {
			return m.moved(on)
		}
	}
	return m.Next()
}

// skipBackward is Prev that jumps if it can.
func (m *mergingIter) skipBackward(start []byte, seq base.SeqNum) bool {
	if s, ok := m.heap[0].iter.(skipper); ok {
		if on, skipped := s.skipBackward(start, seq); skipped {
			return m.moved(on)
		}
	}
	return m.Prev()
}

// A tableIter is the iterator of a table of level 0.
type tableIter struct {
	sstable.Iter
	t *table
}

// newTableIter returns an iterator over t, or nil if it has nothing of the prefix.
func (d *DB) newTableIter(t *table, prefix *scanPrefix, o sstable.IterOptions) (*tableIter, error) {
	r, err := d.openTable(t)
	if err != nil || prefix.rulesOut(d, r) {
		return nil, err
	}
	i := &tableIter{t: t}
	i.Init(r, o)
	return i, nil
}

func (i *tableIter) skipForward(end []byte, seq base.SeqNum) (on, skipped bool) {
	if i.t.LargestSeq >= seq {
		return false, false
	}
	return end != nil && i.SeekGE(base.SearchKey(end, base.MaxSeqNum)), true
}

func (i *tableIter) skipBackward(start []byte, seq base.SeqNum) (on, skipped bool) {
	if i.t.LargestSeq >= seq {
		return false, false
	}
	return i.SeekLT(base.SearchKey(start, base.MaxSeqNum)), true
}

func (l *runIter) skipForward(end []byte, seq base.SeqNum) (on, skipped bool) {
	t := l.run.tables[l.at]
	if t.LargestSeq >= seq {
		return false, false
	}
	inside := end != nil && !t.Before(end)
	return l.forward(inside && l.it.SeekGE(base.SearchKey(end, base.MaxSeqNum))), true
}

func (l *runIter) skipBackward(start []byte, seq base.SeqNum) (on, skipped bool) {
	t := l.run.tables[l.at]
	if t.LargestSeq >= seq {
		return false, false
	}
	inside := bytes.Compare(t.Smallest, start) < 0
	return l.backward(inside && l.it.SeekLT(base.SearchKey(start, base.MaxSeqNum))), true
}
