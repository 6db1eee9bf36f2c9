package kv

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
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
	t *version.Table
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
	t := l.run.Tables[l.at]
	if t.LargestSeq >= seq {
		return false, false
	}
	inside := end != nil && !t.Before(end)
	return l.forward(inside && l.it.SeekGE(base.SearchKey(end, base.MaxSeqNum))), true
}

func (l *runIter) skipBackward(start []byte, seq base.SeqNum) (on, skipped bool) {
	t := l.run.Tables[l.at]
	if t.LargestSeq >= seq {
		return false, false
	}
	inside := bytes.Compare(t.Smallest, start) < 0
	return l.backward(inside && l.it.SeekLT(base.SearchKey(start, base.MaxSeqNum))), true
}

// A key that is written again and again has many versions, of which a reader wants one.

// maxVersions is how many versions of a key an iterator passes one by one before it
// seeks what is behind them: a seek costs as much as some ten steps.
const maxVersions = 8

// passOlder goes on from an older version of i.key. Steps counts such moves.
func (i *Iterator) passOlder(steps *int) bool {
	if *steps++; *steps <= maxVersions {
		return i.merge.Next()
	}
	*steps = 0
	return i.merge.passTo(base.InternalKey{User: i.key}) // the last that a version can be
}

// passNewer goes on from k, which is too new to be seen. Steps counts such moves from
// versions of one key.
func (i *Iterator) passNewer(k base.InternalKey, steps *int) bool {
	p := i.parts
	if *steps == 0 || !bytes.Equal(k.User, p.newer) {
		p.newer = append(p.newer[:0], k.User...)
		*steps = 0
	}
	// A transaction's own writes have larger numbers, and some of them may be in view.
	if *steps++; *steps <= maxVersions || i.own != nil {
		return i.merge.Next()
	}
	*steps = 0
	return i.merge.passTo(base.SearchKey(p.newer, i.at))
}

// passNewerBack is passNewer going backward, where what is too new of a key comes last.
func (i *Iterator) passNewerBack(k base.InternalKey, steps *int) bool {
	p := i.parts
	if *steps == 0 || !bytes.Equal(k.User, p.newer) {
		p.newer = append(p.newer[:0], k.User...)
		*steps = 0
	}
	if *steps++; *steps <= maxVersions || i.own != nil {
		return i.merge.Prev()
	}
	*steps = 0
	return i.merge.SeekLT(base.SearchKey(p.newer, base.MaxSeqNum))
}

// newestFirst decides i.key going forward, for an iterator that goes backward and has
// come to many versions of the key: the newest one would be the last. It reports whether
// the move is over: with a value, or with an error.
func (i *Iterator) newestFirst() (over bool) {
	p := i.parts
	p.behind = append(append(p.behind[:0], i.key...), 0)
	upper := i.upper
	i.upper = p.behind // forward goes no further than the key
	found := i.forward(i.merge.SeekGE(base.SearchKey(i.key, base.MaxSeqNum)), false)
	i.upper, i.backward, i.ahead, i.operands = upper, true, false, i.operands[:0]
	if !found {
		return i.err != nil
	}
	i.older = append(i.older[:0], i.value...) // merge moves on before the value is shown
	i.value = i.older
	i.merge.SeekLT(base.SearchKey(i.key, base.MaxSeqNum))
	if i.err = i.merge.Error(); i.err != nil {
		i.valid = false
	}
	return true
}

// passTo moves on to the first entry at or behind k. Sequences that are before k seek;
// the others stay. The iterator goes forward, and is on an entry.
func (m *mergingIter) passTo(k base.InternalKey) bool {
	for on := true; on; on = m.moved(m.heap[0].iter.SeekGE(k)) {
		if base.Compare(m.heap[0].key, k) >= 0 {
			return true
		}
	}
	return false
}
