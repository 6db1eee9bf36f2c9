package iterator

import "github.com/siftkv/siftkv/internal/base"

// An iterator that meets an entry under a range tombstone need not go through all entries under it one by one. If every
// entry of a table is older than the tombstone, the table's iterator jumps to the tombstone's end. So a deleted range
// costs a scan one step per table, however many keys it had.

// A skipper can jump over a range of keys if all that it holds of them is older than a sequence number. It reports
// whether it did, and whether it is on an entry then.
type skipper interface {
	skipForward(end []byte, seq base.SeqNum) (on, skipped bool)    // to end; nil: over everything
	skipBackward(start []byte, seq base.SeqNum) (on, skipped bool) // to before start
}

// SkipForward is Next that jumps to end (nil: over everything) if it can: where all that the sequence has up to there
// is older than seq.
func (m *Merging) SkipForward(end []byte, seq base.SeqNum) bool {
	if s, ok := m.heap[0].iter.(skipper); ok {
		if on, skipped := s.skipForward(end, seq); skipped {
			return m.Moved(on)
		}
	}
	return m.Next()
}

// SkipBackward is Prev that jumps to before start if it can.
func (m *Merging) SkipBackward(start []byte, seq base.SeqNum) bool {
	if s, ok := m.heap[0].iter.(skipper); ok {
		if on, skipped := s.skipBackward(start, seq); skipped {
			return m.Moved(on)
		}
	}
	return m.Prev()
}

// SkipTo moves on to the first entry at or after k. Sequences that are before k seek; the others stay. The iterator
// goes forward, and is on an entry.
func (m *Merging) SkipTo(k base.InternalKey) bool {
	for on := true; on; on = m.Moved(m.heap[0].iter.SeekGE(k)) {
		if base.Compare(m.heap[0].key, k) >= 0 {
			return true
		}
	}
	return false
}
