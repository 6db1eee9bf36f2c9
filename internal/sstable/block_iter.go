package sstable

import (
	"sort"

	"github.com/siftkv/siftkv/internal/base"
)

// A blockIter walks one block. Its key is rebuilt in a buffer of its own; its
// value aliases the block. An iterator is on an entry, before the first, or
// after the last; a malformed entry ends it with err set.
type blockIter struct {
	b      block
	offset int // of the current entry
	after  int // of the next entry
	key    base.InternalKey
	value  []byte
	valid  bool
	err    error
}

// reset puts the iterator on no entry of b. The key buffer is kept.
func (i *blockIter) reset(b block) {
	*i = blockIter{b: b, key: base.InternalKey{User: i.key.User[:0]}}
}

// load decodes the entry at offset; the key buffer must hold the key before it.
func (i *blockIter) load(offset int) bool {
	i.valid = false
	entries := i.b.entries
	if offset >= len(entries) {
		i.offset = len(entries)
		return false
	}
	if offset+4 <= len(entries) {
		// Four short numbers, as nearly every settled entry has: decodeEntry spelled
		// out, since a call and a struct in memory are a third of a step.
		s, u, v, t := int(entries[offset]), int(entries[offset+1]), int(entries[offset+2]), entries[offset+3]
		if s|u|v|int(t) < 0x80 {
			keyAt, valueAt := offset+4, offset+4+u
			after := valueAt + v
			if after <= len(entries) && s <= len(i.key.User) {
				i.key.User = append(i.key.User[:s], entries[keyAt:valueAt]...)
				i.key.Trailer = base.Trailer(t)
				i.value = entries[valueAt:after:after]
				i.offset, i.after = offset, after
				i.valid = true
				return true
			}
		}
	}
	return i.loadLong(offset)
}

func (i *blockIter) loadLong(offset int) bool {
	var e entry
	if !decodeEntry(i.b.entries, offset, &e) || e.shared > len(i.key.User) {
		i.err = errBlock
		return false
	}
	i.key.User = append(i.key.User[:e.shared], i.b.entries[e.keyAt:e.valueAt()]...)
	i.key.Trailer = e.trailer
	i.offset, i.after = offset, e.next()
	i.value = i.b.entries[e.valueAt():i.after:i.after]
	i.valid = true
	return true
}

func (i *blockIter) toRestart(r int) bool {
	i.key.User = i.key.User[:0]
	return i.load(i.b.restart(r))
}

func (i *blockIter) first() bool {
	if i.b.numRestarts() == 0 {
		i.valid = false
		return false
	}
	return i.toRestart(0)
}

func (i *blockIter) last() bool {
	n := i.b.numRestarts()
	if n == 0 {
		i.valid = false
		return false
	}
	return i.toRestart(n-1) && i.forwardTo(len(i.b.entries))
}

// forwardTo moves on to the entry that ends at offset end.
func (i *blockIter) forwardTo(end int) bool {
	for i.after < end {
		if !i.load(i.after) {
			return false
		}
	}
	return true
}

func (i *blockIter) next() bool { return i.load(i.after) }

// prev goes back to the last restart before the current entry and forward from
// there: entries say what they share with the one before, so there is no other
// way back. It costs half a restart interval on average.
func (i *blockIter) prev() bool {
	at := i.offset
	next := sort.Search(i.b.numRestarts(), func(r int) bool { return i.b.restart(r) >= at })
	if next == 0 {
		i.valid = false
		return false
	}
	return i.toRestart(next-1) && i.forwardTo(at)
}

// seekGE moves to the first entry at or after k.
func (i *blockIter) seekGE(k base.InternalKey) bool {
	if i.b.numRestarts() == 0 {
		i.valid = false
		return false
	}
	r, err := i.b.lastRestartBefore(k)
	if err != nil {
		i.err, i.valid = err, false
		return false
	}
	ok := i.toRestart(r)
	for ok && base.Compare(i.key, k) < 0 {
		ok = i.next()
	}
	return ok
}
