package memtable

import "github.com/siftkv/siftkv/internal/rangedel"

// HasTombstones reports whether there are range tombstones.
func (m *Memtable) HasTombstones() bool { return m.tombs.Load() != nil }

// Tombstones returns the range tombstones; nil if there are none.
func (m *Memtable) Tombstones() *rangedel.History { return m.tombs.Load() }

// maxTombstoneBytes bounds what Measure says of range tombstones, so that there is a memtable for a record of any size.
const maxTombstoneBytes = 1 << 30

// TombstoneSize returns the most bytes that a range tombstone can take. They are not of the arena, but count as if they
// were: a memtable of nothing but tombstones is full when they take as much memory as its entries would.
func TombstoneSize(startLen, endLen int) int { return rangedel.TombstoneSize(startLen, endLen) }

// addTombstones adds those of one batch. No reader sees a part of a batch, so only the newest over each key counts.
func (m *Memtable) addTombstones(tombs []rangedel.Tombstone) {
	if len(tombs) > 0 {
		m.tombs.Store(m.tombs.Load().Add(tombs))
	}
}
