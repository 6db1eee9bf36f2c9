package sstable

import (
	"errors"
	"io"

	"github.com/siftkv/siftkv/internal/cache"
)

// A foreignMemory is the part of a reader that the collector does not see: its blocks in
// the cache, and its mapping. It is given back when the reader is gone, so it does not refer to
// the reader, and a method that uses bytes of it keeps the reader alive (runtime.KeepAlive).
type foreignMemory struct {
	id     uint64
	slots  []cache.Slot
	cache  *cache.Cache
	mapped *mapping
}

func (r *Reader) foreignMemory() *foreignMemory {
	return &foreignMemory{id: r.id, slots: r.slots, cache: r.cache, mapped: r.mapped}
}

func (m *foreignMemory) release() { _ = m.giveBack() }

func (m *foreignMemory) giveBack() error {
	for i := range m.slots {
		m.cache.Drop(slotKey(m.id, i), &m.slots[i])
	}
	m.cache.Release()
	if m.mapped == nil {
		return nil
	}
	return m.mapped.unmap()
}

// Close forgets the reader's cached blocks and closes the file. A second Close does nothing.
func (r *Reader) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	r.forgotten.Stop()
	err := r.foreignMemory().giveBack()
	if c, ok := r.file.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}
