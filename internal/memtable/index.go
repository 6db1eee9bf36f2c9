package memtable

import (
	"bytes"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// An index is a hash table from user keys to nodes, in addition to the list. A lookup of one key costs some twenty
// dependent cache misses in the list; here it costs one for the slot and, if the key is there, those of its node.
//
// A key has its place in one cache line of slots, chosen by its hash: the first slot that was free when it came, going
// round from where the hash says. A slot holds, of the newest version of its key, the number of the node (its offset in
// words) in the lower bits, and bits of the key's hash in those that are left:
//
//	bit 31                            0
//	┌──────────────┬───────────────────┐
//	│ tag: hash    │ node / wordSize   │   0: free
//	└──────────────┴───────────────────┘
//
// Three invariants make it safe without locks:
//
//   - A slot that is taken stays its key's for good. It only ever changes to a newer
//     version. So a search that reaches a free slot has passed every slot that its key
//     may have: the key is not there.
//   - Of two Adds of one key, both try the first free slot, and the loser of that
//     race looks at the slot again: a key has one slot at most.
//   - A node is linked on level 0 of the list before it is in a slot, and in a slot
//     before its Add returns.
//
// A key that finds its line full has no slot. Nothing else is done about it, since a full line shows that keys may be
// missing: a search that finds no free slot continues in the list. With entries of 150 bytes lines are 7/16 full when
// the arena is; one in a thousand is full.
type index struct {
	lines []line
	tags  uint32 // mask of the bits of a slot that are the tag
}

// A line is a cache line of slots.
type line [lineSlots]atomic.Uint32

const (
	lineSlots = 16
	lineSize  = 4 * lineSlots

	// indexShare is how many bytes of arena there are for each byte of index: a
	// slot for 64 bytes. The smallest entries take 40.
	indexShare = 16
)

// linesFor returns how many lines the index of an arena has.
func linesFor(capacity int) int { return max(capacity/(indexShare*lineSize), 1) }

// indexIn returns an empty index in mem, zeros of whole lines, of an arena.
func indexIn(mem []byte, capacity int) index {
	return index{
		lines: unsafe.Slice((*line)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/lineSize),
		tags:  ^uint32(0) << bits.Len(uint(capacity/wordSize)),
	}
}

func (x *index) size() int { return len(x.lines) * lineSize }

// place returns the line of a hash, the slot in it where searches begin, and the
// tag. They are from different bits of the hash.
func (x *index) place(hash uint64) (l *line, start, tag uint32) {
	at, _ := bits.Mul64(hash, uint64(len(x.lines)))
	return &x.lines[at], uint32(hash >> 32), uint32(hash) & x.tags
}

// node returns the node in a slot.
func (x *index) node(slot uint32) node { return node(slot&^x.tags) * wordSize }

// indexed returns the newest indexed version of a user key. It is at least as new as all versions of Adds that have
// returned. If it is nilNode, absent reports whether the key is not in the table; else only the list can tell.
func (m *Memtable) indexed(user []byte, hash uint64) (n node, absent bool) {
	x := &m.index
	l, start, tag := x.place(hash)
	for i := range uint32(lineSlots) {
		slot := l[(start+i)%lineSlots].Load()
		if slot == 0 {
			return nilNode, true
		}
		if (slot^tag)&x.tags == 0 {
			if n := x.node(slot); bytes.Equal(m.user(n), user) {
				return n, false
			}
		}
	}
	return nilNode, false
}

// enter puts a linked node into the slot of its key, unless a newer version is there, or the line is full.
func (m *Memtable) enter(n node, hash uint64) {
	x := &m.index
	l, start, tag := x.place(hash)
	user, trailer := m.user(n), m.trailer(n)
	entry := tag | uint32(n/wordSize)
	for i := uint32(0); i < lineSlots; {
		at := &l[(start+i)%lineSlots]
		slot := at.Load()
		if slot != 0 {
			there := x.node(slot)
			if (slot^tag)&x.tags != 0 || !bytes.Equal(m.user(there), user) {
				i++
				continue
			}
			if m.trailer(there) > trailer {
				return
			}
		}
		if at.CompareAndSwap(slot, entry) {
			return
		}
	}
}
