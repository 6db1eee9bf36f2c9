package sstable

import (
	"bytes"
	"encoding/binary"
	"sort"

	"github.com/siftkv/siftkv/internal/base"
)

// A blockIter walks one block. Its key is rebuilt in a buffer of its own; its value aliases the block. An iterator is
// on an entry, before the first, or after the last; a malformed entry ends it with err set.
//
// A step writes numbers only: a pointer that is stored costs a check of whether the garbage collector is at work.
type blockIter struct {
	b       block
	offset  int // of the current entry
	valueAt int // of its value
	after   int // of the next entry
	trailer base.Trailer
	user    []byte // begins with the user key, which has keyLen bytes
	keyLen  int
	valid   bool
	again   bool // after next: the user key is that of the entry before
	err     error
}

// reset puts the iterator on no entry of b. The key buffer is kept.
func (i *blockIter) reset(b block) { *i = blockIter{b: b, user: i.user} }

func (i *blockIter) key() base.InternalKey {
	return base.InternalKey{User: i.user[:i.keyLen:i.keyLen], Trailer: i.trailer}
}

func (i *blockIter) value() []byte { return i.b.entries[i.valueAt:i.after:i.after] }

// load decodes the entry at offset; the key must be that of the entry before it.
func (i *blockIter) load(offset int) bool {
	entries := i.b.entries
	if offset+4 <= len(entries) {
		// Four short numbers, as in nearly every entry with sequence number 0. This is
		// decodeEntry spelled out: a call and a struct in memory are a third of a step.
		h := binary.LittleEndian.Uint32(entries[offset:])
		if h&0x80808080 == 0 {
			s, u, v := int(h&0xff), int(h>>8&0xff), int(h>>16&0xff)
			valueAt := offset + 4 + u
			after := valueAt + v
			if after <= len(entries) && s <= i.keyLen {
				if n := s + u; u > 0 && u <= 16 && offset+20 <= len(entries) && s+16 <= len(i.user) {
					// Two words, for any length, cost less than a call of memmove: the bytes after the key do not
					// matter. Another key than the one before has another length, or most often another last byte.
					from, to := entries[offset+4:offset+20], i.user[s:s+16]
					i.again = n == i.keyLen && from[u-1] == to[u-1] && bytes.Equal(from[:u], to[:u])
					binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(from))
					binary.LittleEndian.PutUint64(to[8:], binary.LittleEndian.Uint64(from[8:]))
					i.keyLen = n
				} else {
					i.setKey(s, entries[offset+4:valueAt])
				}
				i.trailer = base.Trailer(h >> 24)
				i.offset, i.valueAt, i.after = offset, valueAt, after
				i.valid = true
				return true
			}
		}
	}
	return i.loadLong(offset)
}

func (i *blockIter) loadLong(offset int) bool {
	i.valid = false
	entries := i.b.entries
	if offset >= len(entries) {
		i.offset = len(entries)
		return false
	}
	var e entry
	if !decodeEntry(entries, offset, &e) || e.shared > i.keyLen {
		i.err = errBlock
		return false
	}
	i.setKey(e.shared, entries[e.keyAt:e.valueAt()])
	i.trailer = e.trailer
	i.offset, i.valueAt, i.after = offset, e.valueAt(), e.next()
	i.valid = true
	return true
}

// setKey makes the user key of what it shares with the one before, and of the rest.
func (i *blockIter) setKey(shared int, rest []byte) {
	n := shared + len(rest)
	i.again = n == i.keyLen && bytes.Equal(rest, i.user[shared:n])
	if n > len(i.user) {
		user := make([]byte, max(2*n, minKeyBuffer))
		copy(user, i.user[:shared])
		i.user = user
	}
	copy(i.user[shared:], rest)
	i.keyLen = n
}

// minKeyBuffer is the size of a new key buffer in bytes.
const minKeyBuffer = 64

func (i *blockIter) toRestart(r int) bool {
	i.keyLen = 0
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

// prev goes back to the last restart before the current entry and forward from there: entries say what they share with
// the one before, so there is no other way back. It costs half a restart interval on average.
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
	for ok && base.Compare(i.key(), k) < 0 {
		ok = i.next()
	}
	return ok
}
