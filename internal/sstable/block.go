package sstable

import (
	"encoding/binary"
	"errors"

	"github.com/siftkv/siftkv/internal/base"
)

// A data block holds entries in key order, and two ways into them.
//
//	entries   each: shared    uvarint  key bytes taken from the entry before
//	                unshared  uvarint  key bytes that follow
//	                valueLen  uvarint
//	                trailer   uvarint  sequence number << 8 | kind
//	                key       unshared bytes
//	                value     valueLen bytes
//	restarts  uint16 or uint32 each: offset of an entry with shared = 0, ascending;
//	          the first is 0
//	slots     uint16 each: hash table from user keys to restarts, see slots.go
//	nSlots    uint16  0: no hash table
//	nRestarts uint32  bits 0-29: how many; bit 30: they are uint16; bit 31: slots
//	          are uint16. In the first versions of the format neither is set, and
//	          nSlots counts bytes of another table, which is not used any more.

const (
	blockFooterSize = 2 + 4

	narrowRestarts = 1 << 30
	slotsArePaired = 1 << 31 // each a restart and a fingerprint
	restartsMask   = narrowRestarts - 1
)

var errBlock = errors.New("malformed data block")

// A block is a view of a decoded data block.
type block struct {
	entries  []byte
	restarts []byte
	narrow   bool // restarts are uint16
	slots    slots
}

// viewBlock splits data, which checkBlock has accepted.
func viewBlock(data []byte) block {
	b, _ := splitBlock(data)
	return b
}

func splitBlock(data []byte) (block, bool) {
	n := len(data) - blockFooterSize
	if n < 0 {
		return block{}, false
	}
	slotBytes := int(binary.LittleEndian.Uint16(data[n:]))
	flags := binary.LittleEndian.Uint32(data[n+2:])
	restartBytes := 4 * uint64(flags&restartsMask) // more than an int of 32 bits holds
	if flags&narrowRestarts != 0 {
		restartBytes /= 2
	}
	if flags&slotsArePaired != 0 {
		slotBytes *= slotSize
	}
	if uint64(n) < restartBytes+uint64(slotBytes) {
		return block{}, false
	}
	slotsAt := n - slotBytes
	restartsAt := slotsAt - int(restartBytes)
	b := block{
		entries:  data[:restartsAt:restartsAt],
		restarts: data[restartsAt:slotsAt:slotsAt],
		narrow:   flags&narrowRestarts != 0,
	}
	if flags&slotsArePaired != 0 {
		b.slots = data[slotsAt:n:n]
	}
	return b, true
}

// checkBlock accepts bytes if their restarts cannot lead out of the block. Slots are
// checked as they are used, entries as they are decoded.
func checkBlock(data []byte) error {
	b, ok := splitBlock(data)
	if !ok {
		return errBlock
	}
	n := b.numRestarts()
	if (n == 0) != (len(b.entries) == 0) || n == 0 && len(b.slots) > 0 {
		return errBlock
	}
	if n > 0 && (b.restart(0) != 0 || b.restart(n-1) >= len(b.entries) || !b.restartsAscend()) {
		return errBlock
	}
	return nil
}

// restartsAscend is a loop for each width: every block that is read from a file goes
// through it, and a test of the width in the loop would double what that takes.
func (b block) restartsAscend() bool {
	last := -1
	if b.narrow {
		for rest := b.restarts; len(rest) >= 2; rest = rest[2:] {
			r := int(binary.LittleEndian.Uint16(rest))
			if r <= last {
				return false
			}
			last = r
		}
		return true
	}
	for rest := b.restarts; len(rest) >= 4; rest = rest[4:] {
		r := int(binary.LittleEndian.Uint32(rest))
		if r <= last {
			return false
		}
		last = r
	}
	return true
}

func (b block) numRestarts() int {
	if b.narrow {
		return len(b.restarts) / 2
	}
	return len(b.restarts) / 4
}

func (b block) restart(i int) int {
	if b.narrow {
		return int(binary.LittleEndian.Uint16(b.restarts[2*i:]))
	}
	return int(binary.LittleEndian.Uint32(b.restarts[4*i:]))
}

// An entry is a decoded entry's header and where its bytes are.
type entry struct {
	shared, unshared, valueLen int
	trailer                    base.Trailer
	keyAt                      int // offset of the unshared key bytes
}

func (e *entry) valueAt() int { return e.keyAt + e.unshared }
func (e *entry) next() int    { return e.keyAt + e.unshared + e.valueLen }

// decodeEntry decodes the entry at offset at. It reports false if the entry does not fit into the block.
func decodeEntry(entries []byte, at int, e *entry) bool {
	if at+4 <= len(entries) {
		s, u, v, t := entries[at], entries[at+1], entries[at+2], entries[at+3]
		if s|u|v|t < 0x80 { // four short numbers, as in nearly every entry with sequence number 0
			e.shared, e.unshared, e.valueLen = int(s), int(u), int(v)
			e.trailer = base.Trailer(t)
			e.keyAt = at + 4
			return e.next() <= len(entries)
		}
	}
	return decodeLongEntry(entries, at, e)
}

func decodeLongEntry(entries []byte, at int, e *entry) bool {
	if at > len(entries) {
		return false
	}
	var fields [4]uint64
	for i := range fields {
		if at < len(entries) && entries[at] < 0x80 { // most are short: not worth a call
			fields[i] = uint64(entries[at])
			at++
			continue
		}
		v, n := binary.Uvarint(entries[at:])
		if n <= 0 {
			return false
		}
		fields[i] = v
		at += n
	}
	left := uint64(len(entries) - at)
	if fields[1] > left || fields[2] > left-fields[1] || fields[0] > maxBlockSize {
		return false
	}
	e.shared, e.unshared, e.valueLen = int(fields[0]), int(fields[1]), int(fields[2])
	e.trailer = base.Trailer(fields[3])
	e.keyAt = at
	return true
}

// restartKey returns the key of the entry at restart i.
func (b block) restartKey(i int) (base.InternalKey, bool) {
	var e entry
	if !decodeEntry(b.entries, b.restart(i), &e) || e.shared != 0 {
		return base.InternalKey{}, false
	}
	return base.InternalKey{User: b.entries[e.keyAt:e.valueAt()], Trailer: e.trailer}, true
}

// lastRestartBefore returns the last restart with a key less than k, or 0.
func (b block) lastRestartBefore(k base.InternalKey) (int, error) {
	lo, hi := 0, b.numRestarts()
	for hi-lo > 1 {
		mid := int(uint(lo+hi) >> 1)
		key, ok := b.restartKey(mid)
		if !ok {
			return 0, errBlock
		}
		if base.Compare(key, k) < 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// A found is what a block says of a user key.
type found struct {
	value   []byte // of the newest visible version; aliases the block
	trailer base.Trailer
	ok      bool // a visible version is here
	present bool // some version is here, visible or not
	more    bool // the block ended before a larger key came: versions may go on in the next block
	passed  bool // the walk began with a key that is not larger: if it is not here, it is nowhere in the block
}

// find looks for the newest version of key at or below seq. It copies no key: it keeps count of how many bytes of key
// the entry before agreed with, and the entry's shared count then decides most comparisons without looking at bytes.
func (b block) find(key []byte, hash uint64, at base.SeqNum) (f found, err error) {
	if len(b.slots) == 0 {
		return b.search(key, at)
	}
	p := b.slots.probe(hash)
	offset, err := b.nextWalk(&p)
	if err != nil {
		return found{}, err
	}
	return b.walk(&p, offset, key, at)
}

// noWalk is where a walk begins that need not be made.
const noWalk = -1

// nextWalk returns the offset at which the next walk for a key begins, and asks for the
// lines there; noWalk if the key is not in the block.
func (b block) nextWalk(p *slotProbe) (offset int, err error) {
	restart, ok := p.next()
	if !ok {
		return noWalk, nil
	}
	if restart >= b.numRestarts() {
		return noWalk, errBlock
	}
	offset = b.restart(restart)
	prefetchEntry(b.entries, offset)
	return offset, nil
}

// walk is find beginning with the walk at offset. A larger key with the key's fingerprint may lead here: then it goes
// on to the next walk. Walks that tell nothing end at their first entry, so together they cost at most one walk.
func (b block) walk(p *slotProbe, offset int, key []byte, at base.SeqNum) (f found, err error) {
	for offset != noWalk {
		if f, err = b.scan(offset, key, at); f.passed || err != nil {
			return f, err
		}
		if offset, err = b.nextWalk(p); err != nil {
			return found{}, err
		}
	}
	return found{}, nil
}

// search is find in a block without a hash table.
func (b block) search(key []byte, at base.SeqNum) (found, error) {
	if b.numRestarts() == 0 {
		return found{more: true}, nil
	}
	start, err := b.lastRestartBefore(base.SearchKey(key, base.MaxSeqNum))
	if err != nil {
		return found{}, err
	}
	return b.scan(b.restart(start), key, at)
}

func (b block) scan(offset int, key []byte, at base.SeqNum) (f found, err error) {
	var e entry
	matched := 0 // the entry before is below key and agrees with it so far
	for offset < len(b.entries) {
		if !decodeEntry(b.entries, offset, &e) {
			return found{}, errBlock
		}
		offset = e.next()
		if e.shared > matched {
			continue // it differs from key where the entry before did
		}
		if e.shared == 0 {
			matched = 0
		} else if e.shared < matched {
			return f, nil // it differs from the entry before within key: larger
		}
		suffix, rest := b.entries[e.keyAt:e.valueAt()], key[matched:]
		m := 0
		for m < len(suffix) && m < len(rest) && suffix[m] == rest[m] {
			m++
		}
		switch {
		case m < len(suffix) && (m == len(rest) || suffix[m] > rest[m]):
			return f, nil
		case m == len(suffix) && m == len(rest):
			f.present = true
			if e.trailer.SeqNum() <= at {
				f.value, f.trailer = b.entries[e.valueAt():offset:offset], e.trailer
				f.ok, f.passed = true, true
				return f, nil
			}
		}
		f.passed = true
		matched += m
	}
	f.more = true
	return f, nil
}
