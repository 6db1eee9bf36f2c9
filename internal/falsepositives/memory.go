// Package falsepositives remembers which keys a file was read for in vain, so that a filter's false positive is paid
// once. A file never changes, so nothing invalidates the fact that it has no version of a key.
//
// A Memory is a table of slots in sets of eight. Sixteen bits of a hash, the tag of a slot, are separate from the rest:
// the tags of a set are two adjacent words. So a key that is not remembered, such as any key of the file, costs one
// cache line of a small array. If a tag agrees, the whole key and the table are compared. So a hash collision, by
// chance or by intent, never hides a key.
//
// Tables are identified by numbers of the Memory, not by the ids in their files: the author of a file for Ingest can
// choose its id.
package falsepositives

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

const (
	// SlotBytes is what a slot takes of the bytes that New is given.
	SlotBytes = 16
	// FactBytes is what a remembered key takes in addition to its slot.
	FactBytes = 80

	// MaxKey is the length in bytes of the longest key that is remembered.
	MaxKey = 64

	ways    = 8 // slots of a set
	lanes   = 4 // tags in a word
	words   = ways / lanes
	maxUses = 3

	// Of new facts for a full set, one in admitOneIn is remembered. Repeated facts get in soon, and keys that are
	// looked up once cost no memory.
	admitOneIn = 4

	// With one in forgetOneIn of these, the other facts of the set lose a use.
	forgetOneIn = 16
)

// A Memory is the memory of one store. All methods are safe for concurrent use, and none waits. Nil is
// a Memory that remembers nothing.
type Memory struct {
	sets   uint64
	slots  atomic.Pointer[slots] // nil until there is something to remember
	tables atomic.Uint64         // that were given numbers
	others atomic.Uint64         // facts that came to a full set
	facts  atomic.Int64
}

// New returns a Memory with bytes / SlotBytes slots, at least eight. They are allocated when the first fact is
// remembered.
func New(bytes int64) *Memory {
	return &Memory{sets: uint64(max(bytes/(SlotBytes*ways), 1))}
}

// Most returns the most that a Memory of a size ever takes, its keys included, in bytes.
func Most(bytes int64) int64 { return int64(New(bytes).sets) * ways * (SlotBytes + FactBytes) }

// Len returns how many facts are remembered.
func (m *Memory) Len() int {
	if m == nil {
		return 0
	}
	return int(m.facts.Load())
}

// Bytes returns what the memory takes now: its slots, once there is something to remember, and the keys.
func (m *Memory) Bytes() int64 {
	if m == nil || m.slots.Load() == nil {
		return 0
	}
	return int64(m.sets)*ways*SlotBytes + m.facts.Load()*FactBytes
}

// NewTable returns the Table for one more file. Take a new one each time a file is opened, and use it while that is
// open: nothing is known of a file that may have replaced it since.
func (m *Memory) NewTable() Table {
	if m == nil {
		return Table{}
	}
	return Table{memory: m, number: m.tables.Add(1), salt: rand.Uint64()}
}

// A Table is the part of a Memory that is about one table. The zero Table knows nothing, and
// remembers nothing. It is a value, and may be copied.
type Table struct {
	memory *Memory
	number uint64
	salt   uint64 // so that keys cannot be chosen to fall into one set
}

// Remembers reports whether the table is known to have no version of key, of which hash is the hash that
// Remember was given. It allocates nothing.
func (t *Table) Remembers(key []byte, hash uint64) bool {
	if t.memory == nil || len(key) > MaxKey {
		return false
	}
	s := t.memory.slots.Load()
	return s != nil && s.find(t, key, hash)
}

// Remember notes that the table has no version of key at all: none of any sequence number, deleted, expired or
// not. Keys above MaxKey are not remembered, nor are some of those for which others would have to be
// forgotten. Key is copied.
func (t *Table) Remember(key []byte, hash uint64) {
	m := t.memory
	if m == nil || len(key) > MaxKey {
		return
	}
	s := m.slots.Load()
	if s == nil {
		m.slots.CompareAndSwap(nil, newSlots(m.sets))
		s = m.slots.Load()
	}
	if s.find(t, key, hash) {
		return // another goroutine has remembered it at the same time
	}
	n, tag := t.place(hash, m.sets)
	slot, empty := s.sets[n].empty()
	if !empty {
		others := m.others.Add(1)
		if others%admitOneIn != 0 {
			return
		}
		slot = s.sets[n].victim(others%(admitOneIn*forgetOneIn) == 0)
	}
	f := &fact{about: t.about(key)}
	copy(f.key[:], key)
	if s.fill(n, slot, f, tag) {
		m.facts.Add(1)
	}
}

// place returns the set and the tag of a key. A tag is never 0, which is that of an empty slot.
func (t *Table) place(hash, sets uint64) (set, tag uint64) {
	const multiplier = 0x9e3779b97f4a7c15
	h := (hash ^ t.salt) * multiplier
	h ^= h >> 32
	h *= multiplier
	set, _ = bits.Mul64(h, sets)
	tag = max(h>>8&0xffff, 1) // the set is of the bits above
	return set, tag
}
