package memtable

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// Errors of Add.
var (
	ErrFull      = errors.New("siftkv: memtable is full")
	ErrDuplicate = errors.New("siftkv: memtable holds this key with this sequence number and kind already")
)

// maxCapacity keeps every offset below 1<<32, and within an int.
const maxCapacity = min(math.MaxUint32, math.MaxInt) &^ (wordSize - 1)

// A Memtable is a sorted set of internal keys with their values, and a history of range
// tombstones. All methods are safe for concurrent use, except as Apply says.
type Memtable struct {
	arena  unsafe.Pointer // the first of bytes
	bytes  []byte         // aligned to words
	record []byte         // that values are in, see Fill; nil: they are in the arena
	beside int            // bytes of that record, from the start
	index  index
	seed   uint64       // of the heights of towers
	height atomic.Int32 // of the highest tower
	tombs  atomic.Pointer[rangedel.History]

	folded  atomic.Bool // there may be folds
	growing int64       // bytes of folds that grow with each operand; used when folds are made
	inVain  int64       // bytes that were combined and did not become a fold, likewise

	Log     uint64        // the WAL that has its writes; the owner sets it before it is read
	LastSeq atomic.Uint64 // the owner's: the newest write, once no more come; 0: not known

	memory *recycled // of arena and index; nil: they are in the heap
	refs   atomic.Int64
	holds  holds

	_ [64]byte // what readers need is on other cache lines than what each Add changes

	used     atomic.Uint64 // bytes of nodes, and of values << 32
	reserved atomic.Int64  // bytes promised by Reserve and not released
	count    atomic.Int64  // points, and tombstones among them << 32

	// tails holds, for each level, a node on it, or head: the last one, unless races have reordered stores.
	tails [maxHeight]atomic.Uint32
}

// New returns an empty memtable with an arena of capacity bytes, at most 4 GiB, and an index of a sixteenth of that in
// addition. The operating system supplies their pages as they are first written. A capacity too small for one entry
// makes a table that is always full.
func New(capacity int) *Memtable {
	return layoutOf(capacity).inHeap()
}

// A layout says how the memory of a memtable is divided: the index, and then the arena. A beside that is not 0 is the
// length of the only record that it takes.
type layout struct{ lines, arena, beside int }

func layoutOf(capacity int) layout {
	capacity = roundUp(max(min(capacity, maxCapacity), firstNode))
	return layout{lines: linesFor(capacity), arena: capacity}
}

func (l layout) size() int { return l.lines*lineSize + l.arena }

func (l layout) inHeap() *Memtable {
	words := make([]uint64, l.size()/wordSize)
	return l.in(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), l.size()))
}

// zeros is how much of a memtable's memory has to be zeros, from its start: the index, and the
// head of the list. A node is written whole before a link leads to it, whatever was there.
func (l layout) zeros() int { return l.lines*lineSize + firstNode }

const firstNode = int(head) + keyField + prefixSize + tailSize

// in returns an empty memtable in mem.
func (l layout) in(mem []byte) *Memtable {
	arena := mem[l.lines*lineSize:]
	m := &Memtable{arena: unsafe.Pointer(unsafe.SliceData(arena)), bytes: arena, seed: rand.Uint64(),
		index: indexIn(mem[:l.lines*lineSize], len(arena)), beside: l.beside}
	m.holds.full.Store(l.beside > 0)
	m.used.Store(uint64(firstNode))
	m.height.Store(1)
	for level := range m.tails {
		m.tails[level].Store(uint32(head))
	}
	return m
}

// Slack is room to add to the entries of a memtable that is made for them.
const Slack = 4 << 10

// CapacityWithin returns the largest capacity with which New takes at most size bytes, or a few more if size is tiny.
func CapacityWithin(size int) int { return size - size/(indexShare+1) }

// EntrySize returns the most arena bytes that an entry can take: the argument
// for Reserve. An entry takes about 50 bytes less on average.
func EntrySize(keyLen, valueLen int) int {
	return sizeBefore(maxHeight) + sizeFrom(keyLen) + valueLen
}

// Reserve reserves n bytes of the arena, and reports whether there was room. If there was, Adds with EntrySizes of at
// most n together will not find the table full, provided that all other Adds have reservations of their own. The caller
// releases the bytes with Release(n) when these Adds have returned. The check is exact for one caller at a time; of two
// at once, both may be refused where one would fit. A table that holds too much (Hold) has no room either.
func (m *Memtable) Reserve(n int) bool {
	return (n <= 0 || !m.holds.full.Load()) && m.reserve(n)
}

// reserve is Reserve for what has room in a sealed table too.
func (m *Memtable) reserve(n int) bool {
	if n <= 0 || n > len(m.bytes) {
		return n == 0
	}
	reserved := m.reserved.Add(int64(n))
	// In this order: bytes that other Adds take between the two loads are counted twice, never missed.
	if reserved+m.inUse() > int64(len(m.bytes)) {
		m.reserved.Add(-int64(n))
		return false
	}
	return true
}

// Release ends a reservation of n bytes. What its Adds did not take is free for others.
func (m *Memtable) Release(n int) { m.reserved.Add(-int64(n)) }

// Add inserts a point; it copies the key and the value. When it returns, every read finds the entry. The hash is that
// of the user key, by a function of the caller's choice that is the same for all calls. It should mix all 64 bits: a
// bad function makes reads slow, but not wrong. Add takes O(log n) steps, and most new versions of a key that is in the
// table take O(1).
//
// It returns ErrFull if the arena has no room for the entry. It returns ErrDuplicate if the table has an entry of the
// same user key, sequence number and kind. Then that entry stays as it is, and the space that the attempt took is lost.
func (m *Memtable) Add(k base.InternalKey, hash uint64, value []byte) error {
	var p insert
	if err := m.prepare(&p, k, hash, value); err != nil {
		return err
	}
	m.locate(&p)
	return m.put(&p)
}

// prepare makes p the insertion of a point, and its node.
func (m *Memtable) prepare(p *insert, k base.InternalKey, hash uint64, value []byte) (err error) {
	p.k, p.prefix, p.hash, p.height = k, keyPrefix(k.User), hash, m.drawHeight(k.Trailer, hash)
	if p.node, err = m.newNode(k, value, p.height); err != nil {
		return err
	}
	m.raise(p.height)
	p.levels, p.splice.duplicate = p.height, false
	return nil
}

// locate fills in the splice of p, the shortest way.
func (m *Memtable) locate(p *insert) {
	if !m.findEnd(p) && (p.height > 1 || !m.findNewer(p)) {
		m.find(p)
	}
}

// put puts the node of p into the list and the index. A fold does not count as a point.
func (m *Memtable) put(p *insert) error {
	n, s := p.node, &p.splice
	for level := range p.height {
		for !m.link(n, level, s) { // others have linked nodes there
			s.before[level], s.after[level] = m.walk(s.before[level], nilNode, p.prefix, p.k, level)
		}
		if s.duplicate {
			return ErrDuplicate
		}
	}
	m.enter(n, p.hash)
	switch p.k.Kind() {
	case KindFold:
	case base.KindDelete:
		m.count.Add(1 + 1<<32)
	default:
		m.count.Add(1)
	}
	return nil
}

// newNode takes space from the arena and fills in all of a node but its links.
func (m *Memtable) newNode(k base.InternalKey, value []byte, height int) (node, error) {
	before := uint64(sizeBefore(height))
	start, valueAt, ok := m.allocate(before+sizeFrom(uint64(len(k.User))), uint64(len(value)))
	if !ok {
		return nilNode, ErrFull
	}
	n := node(start + before)
	m.fillNode(n, k, valueAt+uint64(len(m.record)), len(value))
	copy(m.value(n), value)
	return n, nil
}

// fillNode writes a node except its links. valueAt is the value's offset, as for value.
func (m *Memtable) fillNode(n node, k base.InternalKey, valueAt uint64, valueLen int) {
	*(*uint32)(unsafe.Add(m.arena, int(n)+keyLenField)) = uint32(len(k.User))
	tail := m.tail(n)
	*(*base.Trailer)(unsafe.Add(tail, trailerField)) = k.Trailer
	*(*uint32)(unsafe.Add(tail, valueAtField)) = uint32(valueAt)
	*(*uint32)(unsafe.Add(tail, valueLenField)) = uint32(valueLen)
	*(*uint64)(unsafe.Add(m.arena, int(n)+keyField)) = 0 // a shorter key ends in zeros
	copy(m.user(n), k.User)
}

// allocate takes space for a node from the front of the arena, and for a value from its back.
func (m *Memtable) allocate(nodeSize, valueSize uint64) (nodeAt, valueAt uint64, ok bool) {
	capacity := uint64(len(m.bytes))
	for {
		used := m.used.Load()
		nodes, values := used&math.MaxUint32, used>>32
		if nodes+nodeSize+values+valueSize > capacity {
			return 0, 0, false
		}
		if m.used.CompareAndSwap(used, used+nodeSize+valueSize<<32) {
			return nodes, capacity - values - valueSize, true
		}
	}
}

// raise makes searches start at least at height.
func (m *Memtable) raise(height int) {
	for {
		h := m.height.Load()
		if int32(height) <= h || m.height.CompareAndSwap(h, int32(height)) {
			return
		}
	}
}

// Get returns the newest version of a user key that a reader at seq may see. The value aliases the arena and must not
// be modified. The trailer tells a value from a tombstone, and may be that of a fold (KindFold). The hash is the one
// that Add was given for the key. Get does not allocate. It touches a handful of cache lines, or one if the key is not
// there. It takes O(log n) steps if the index has no room for the key, or seq is older than several versions of it.
func (m *Memtable) Get(user []byte, hash uint64, seq base.SeqNum) (value []byte, trailer base.Trailer, ok bool) {
	n := m.newest(user, hash, seq)
	if n == nilNode {
		return nil, 0, false
	}
	return m.value(n), m.trailer(n), true
}

// maxSteps is how many versions a lookup passes on its way to an older one before it searches the list.
const maxSteps = 8

// newest returns the newest version of a user key at or below seq, or nilNode.
func (m *Memtable) newest(user []byte, hash uint64, seq base.SeqNum) node {
	k := base.SearchKey(user, seq)
	n, absent := m.indexed(user, hash)
	if absent {
		return nilNode
	}
	for steps := 0; n != nilNode && steps < maxSteps; steps++ {
		if m.trailer(n) <= k.Trailer {
			return n
		}
		if n = m.next(n); n == nilNode || !bytes.Equal(m.user(n), user) {
			return nilNode
		}
	}
	if _, n = m.seek(k); n == nilNode || !bytes.Equal(m.user(n), user) {
		return nilNode
	}
	return n
}

// IndexSize returns the bytes of the index. They are all set aside from the start.
func (m *Memtable) IndexSize() int64 { return int64(m.index.size()) }

// Capacity returns the bytes of the arena, and of the record that values are in.
func (m *Memtable) Capacity() int64 { return int64(len(m.bytes) + m.beside) }

// Bytes returns the memory that the memtable takes, in use or not: its capacity and its index.
func (m *Memtable) Bytes() int64 { return m.Capacity() + m.IndexSize() }

// Size returns the bytes of the arena that are in use, those of range tombstones, and those of the record that values
// are in.
func (m *Memtable) Size() int64 { return m.inUse() + int64(m.beside) }

// inUse is Size without the record.
func (m *Memtable) inUse() int64 {
	used := m.used.Load()
	return int64(used&math.MaxUint32+used>>32) + int64(m.tombs.Load().Size())
}

// Len returns the number of points.
func (m *Memtable) Len() int { return int(m.count.Load() & math.MaxUint32) }

// Deletes returns the number of points that are tombstones.
func (m *Memtable) Deletes() int { return int(m.count.Load() >> 32) }

// HasPoints reports whether there are points.
func (m *Memtable) HasPoints() bool { return m.next(head) != nilNode }

// Empty reports whether there are neither points nor range tombstones.
func (m *Memtable) Empty() bool { return !m.HasPoints() && !m.HasTombstones() }
