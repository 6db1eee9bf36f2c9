package memtable

import (
	"sync"

	"github.com/siftkv/siftkv/internal/rangedel"
)

// A tombstoneList is an immutable list of range tombstones, and the set made of it when
// somebody first asks.
type tombstoneList struct {
	list []rangedel.Tombstone
	kept int // what KeepNewest had left of the list
	once sync.Once
	set  *rangedel.Set
}

func (l *tombstoneList) get() *rangedel.Set {
	l.once.Do(func() { l.set = rangedel.NewSet(l.list) })
	return l.set
}

// maxTombstones is how many range tombstones make a memtable crowded. A lookup after a
// range delete cuts all of them into fragments anew, and a fragment lists all that cover
// it: the cost grows with the square where they are nested.
const maxTombstones = 128

// HasTombstones reports whether there are range tombstones.
func (m *Memtable) HasTombstones() bool { return m.tombs.Load() != nil }

// Tombstones returns the range tombstones; nil if there are none.
func (m *Memtable) Tombstones() *rangedel.Set {
	l := m.tombs.Load()
	if l == nil {
		return nil
	}
	return l.get()
}

// Crowded reports whether there are so many range tombstones that the memtable should
// be flushed.
func (m *Memtable) Crowded() bool {
	l := m.tombs.Load()
	return l != nil && len(l.list) >= maxTombstones
}

// addTombstones adds those of one batch. No reader sees a part of a batch, so only the
// newest over each key counts.
func (m *Memtable) addTombstones(tombs []rangedel.Tombstone) {
	if len(tombs) == 0 {
		return
	}
	var before tombstoneList
	if l := m.tombs.Load(); l != nil {
		before.list, before.kept = l.list, l.kept
	}
	// Readers of the old list see only its length: appending past it is safe.
	m.tombs.Store(&tombstoneList{list: append(before.list, rangedel.Newest(tombs)...), kept: before.kept})
}

// KeepNewest drops range tombstones that newer ones cover. It is for a memtable that
// nobody reads as it was before its last write.
func (m *Memtable) KeepNewest() {
	if l := m.tombs.Load(); l != nil {
		list := rangedel.Newest(l.list)
		m.tombs.Store(&tombstoneList{list: list, kept: len(list)})
	}
}

// Doubled reports whether the memtable is crowded, and has twice as many range
// tombstones as KeepNewest left the last time.
func (m *Memtable) Doubled() bool {
	l := m.tombs.Load()
	return l != nil && len(l.list) >= max(maxTombstones, 2*l.kept)
}
