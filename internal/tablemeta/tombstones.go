package tablemeta

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/rangedel"
)

// maxTombstoneBytes bounds the range tombstones of a table that may be cut, in bytes: opening the
// table reads all of them.
const maxTombstoneBytes = 1 << 20

// tombstoneOverhead is what a range tombstone takes in a file in addition to its keys.
const tombstoneOverhead = 16

func tombstoneBytes(t rangedel.Tombstone) int64 {
	return int64(tombstoneOverhead + len(t.Start) + len(t.End))
}

// A tombstoneTally adds up the range tombstones that an open table will have, as its entries pass their starts.
type tombstoneTally struct {
	ahead int    // position of the first whose start no entry has passed
	bytes int64  // of those passed since the table began
	last  []byte // user key of the table's last entry
	any   bool   // the table has entries
}

// pass returns how many bytes of tombstones the table has before an entry of the user key;
// 0 if the key is that of the entry before, from which it must not be cut.
func (a *tombstoneTally) pass(s *rangedel.Set, user []byte) int64 {
	if a.any && bytes.Equal(a.last, user) {
		return 0
	}
	for ; a.ahead < s.Len(); a.ahead++ {
		t := s.At(a.ahead)
		if bytes.Compare(t.Start, user) >= 0 {
			break
		}
		a.bytes += tombstoneBytes(t)
	}
	return a.bytes
}

// add takes an entry of the open table.
func (a *tombstoneTally) add(user []byte) { a.last, a.any = append(a.last[:0], user...), true }

// cut returns how many of tombs, which begin at the open table's start, the table takes.
// The rest, which covers none of the table's entries, goes into tables of its own.
func (a *tombstoneTally) cut(tombs []rangedel.Tombstone, most int64) int {
	sum := int64(0)
	for i, t := range tombs {
		if sum += tombstoneBytes(t); sum <= most || i == 0 || bytes.Equal(t.Start, tombs[i-1].Start) {
			continue
		}
		if !a.any || bytes.Compare(t.Start, a.last) > 0 {
			return i
		}
	}
	return len(tombs)
}
