package kv

import (
	"github.com/siftkv/siftkv/internal/batchrepr"
)

// A log that has handles of values has been written after the blob files that have them were synced. So a file that
// is missing, or has no end, is damage: no crash explains it.

// A heldIn is a blob file, by its number, that a memtable holds.
type heldIn struct {
	m    *memTable
	file uint64
}

// holdBlobs has a memtable hold the blob files that a record's handles lead to.
func (p *replayer) holdBlobs(m *memTable, record []byte) error {
	for e, err := range batchrepr.All(record) {
		if err != nil {
			return err
		}
		if !e.Key.Kind().Apart() {
			continue
		}
		h, _, err := handleOf(e.Key.User, e.Value, e.Key.Kind())
		if err != nil {
			return err
		}
		b, err := p.d.findHeld(e.Key.User, h)
		if err != nil {
			return err
		}
		if p.holding[heldIn{m, h.File}] {
			b.Release()
			continue
		}
		if p.holding == nil {
			p.holding = map[heldIn]bool{}
		}
		p.holding[heldIn{m, h.File}] = true
		m.Hold(b, h.Length)
	}
	return nil
}

// dropAll gives up memtables that nobody has come to use.
func dropAll(mems []*memTable) {
	for _, m := range mems {
		m.Drop()
	}
}
