package memtable

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/siftkv/siftkv/internal/base"
)

// A node is the offset n of a list node in the arena, a multiple of 8. Around n are, in the machine's byte order:
//
//	n-4-4i   next[i]   u32   for levels i = height-1 … 1
//	n-4      prev      u32   a node before this one, see Memtable.before
//	n        next[0]   u32
//	n+4      keyLen    u32
//	n+8      user key, zeros up to 8 bytes, and anything up to whole words
//	then     trailer   u64
//	         valueAt   u32   offset of the value: in the record, if there is one, and after its end in the arena
//	         valueLen  u32
//
// Nodes fill the arena from its start and values from its end: what a search
// costs is cache misses, and these are fewer the denser nodes are.
//
// The first 8 bytes of the key, read as a big-endian number, order nodes as their keys do wherever the numbers differ.
// A search needs a node's link and that number: 16 adjacent bytes on level 0 and 24 on levels 1 and 2. The rest of a
// short key comes next: mostly one cache line in all.
//
// The goroutine that makes a node writes it until a link leads to it. After that, its links and prev are read and
// written atomically, and nothing else is written.
type node uint32

const (
	// maxHeight bounds a tower. With one node in four of a level on the next, it
	// is enough for 4^14 entries, more than 4 GiB of the smallest nodes.
	maxHeight = 14

	wordSize   = 8
	prefixSize = 8

	// Offsets of fields, relative to a node.
	prevField   = -4
	nextField   = 0
	keyLenField = 4
	keyField    = 8

	// Offsets of fields after the key, and their size together.
	trailerField  = 0
	valueAtField  = 8
	valueLenField = 12
	tailSize      = 16

	nilNode = node(0)
	head    = node((4*maxHeight + wordSize - 1) &^ (wordSize - 1))
)

// drawHeight returns the height of an entry's tower: h with probability 3/4^h. It is drawn from the key's hash, which
// costs less than a random number. The trailer gives versions of a key different heights, and a seed prevents keys that
// are chosen to have low towers.
func (m *Memtable) drawHeight(trailer base.Trailer, hash uint64) int {
	return 1 + bits.TrailingZeros64(m.draw(trailer, hash)|1<<(2*(maxHeight-1)))/2
}

func (m *Memtable) draw(trailer base.Trailer, hash uint64) uint64 {
	hi, lo := bits.Mul64(hash^m.seed, uint64(trailer)*0x9e3779b97f4a7c15^m.seed>>32^0xd6e8feb86659fd93)
	return hi ^ lo
}

func roundUp[T int | uint64](n T) T { return (n + wordSize - 1) &^ (wordSize - 1) }

// sizeBefore returns the bytes of a node before its offset, in whole words.
func sizeBefore(height int) int { return roundUp(4 * height) }

// sizeFrom returns the bytes of a node at and after its offset, in whole words.
func sizeFrom[T int | uint64](keyLen T) T { return keyField + keySize(keyLen) + tailSize }

func keySize[T int | uint64](keyLen T) T { return roundUp(max(keyLen, prefixSize)) }

// keyPrefix returns the number that a search compares first.
func keyPrefix(user []byte) uint64 {
	if len(user) >= prefixSize {
		return binary.BigEndian.Uint64(user)
	}
	var b [prefixSize]byte
	copy(b[:], user)
	return binary.BigEndian.Uint64(b[:])
}

// linkAt returns the offset of a node's link on a level, relative to the node.
func linkAt(level int) int {
	if level == 0 {
		return nextField
	}
	return prevField - 4*level
}

// word returns the atomic word at a distance from a node.
func word(arena unsafe.Pointer, n node, at int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Add(arena, int(n)+at))
}

func loadLink(arena unsafe.Pointer, n node, at int) node { return node(word(arena, n, at).Load()) }

func loadPrefix(arena unsafe.Pointer, n node) uint64 {
	return binary.BigEndian.Uint64((*[prefixSize]byte)(unsafe.Add(arena, int(n)+keyField))[:])
}

func (m *Memtable) next(n node) node       { return loadLink(m.arena, n, nextField) }
func (m *Memtable) hint(n node) node       { return loadLink(m.arena, n, prevField) }
func (m *Memtable) setHint(n, before node) { word(m.arena, n, prevField).Store(uint32(before)) }

// write sets a link or the hint of a node to which, on that level, none leads yet:
// it needs no atomic store, which costs a barrier.
func (m *Memtable) write(n node, at int, to node) {
	*(*uint32)(unsafe.Add(m.arena, int(n)+at)) = uint32(to)
}

func (m *Memtable) keyLen(n node) uint64 {
	return uint64(*(*uint32)(unsafe.Add(m.arena, int(n)+keyLenField)))
}

// tail returns the address of the fields after the key of a node.
func (m *Memtable) tail(n node) unsafe.Pointer {
	return unsafe.Add(m.arena, uint64(n)+keyField+keySize(m.keyLen(n)))
}

func (m *Memtable) trailer(n node) base.Trailer {
	return *(*base.Trailer)(unsafe.Add(m.tail(n), trailerField))
}

// user returns the user key of a node, aliasing the arena.
func (m *Memtable) user(n node) []byte {
	at := uint64(n) + keyField
	end := at + m.keyLen(n)
	return m.bytes[at:end:end]
}

// value returns the value of a node, aliasing the arena or the record.
func (m *Memtable) value(n node) []byte {
	tail := m.tail(n)
	at := uint64(*(*uint32)(unsafe.Add(tail, valueAtField)))
	size := uint64(*(*uint32)(unsafe.Add(tail, valueLenField)))
	if inRecord := uint64(len(m.record)); at < inRecord {
		return m.record[at : at+size : at+size]
	} else if inRecord > 0 {
		at -= inRecord
	}
	return m.bytes[at : at+size : at+size]
}

// key returns the internal key of a node, aliasing the arena.
func (m *Memtable) key(n node) base.InternalKey {
	return base.InternalKey{User: m.user(n), Trailer: m.trailer(n)}
}
