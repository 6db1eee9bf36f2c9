package memtable

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A Held is something that entries of a memtable refer to, such as a file that has their values.
type Held interface {
	// Release is called once, after the last use of the memtable. It must not wait.
	Release()
}

// What a memtable holds in addition to its entries takes room on the disk until the memtable is gone. So beyond a bound
// the memtable accepts no more entries: otherwise overwritten values would stay as long as there is room for handles.
const (
	mostHeldBytes = 256 << 20
	mostHeld      = 1 << 10
)

// holds is what a memtable holds.
type holds struct {
	any  atomic.Bool
	full atomic.Bool // the memtable takes no more entries

	mu    sync.Mutex
	list  []Held
	bytes int64
}

// Hold keeps h, which takes bytes bytes, until after the last use of the memtable. Call it before adding the entries
// that refer to h. With too many or too large ones, Reserve finds no room.
func (m *Memtable) Hold(h Held, bytes int64) {
	s := &m.holds
	s.mu.Lock()
	s.list = append(s.list, h)
	s.bytes += bytes
	full := s.bytes >= mostHeldBytes || len(s.list) >= mostHeld
	s.mu.Unlock()
	s.any.Store(true)
	if full {
		s.full.Store(true)
	}
}

// Seal makes later calls of Reserve find no room. Folds still do.
func (m *Memtable) Seal() { m.holds.full.Store(true) }

// Sealed reports whether Reserve finds no room, however much of the arena is free.
func (m *Memtable) Sealed() bool { return m.holds.full.Load() }

// HoldsAny reports whether Hold was ever called.
func (m *Memtable) HoldsAny() bool { return m.holds.any.Load() }

// Held returns what the memtable holds, in the order of the calls of Hold.
func (m *Memtable) Held() []Held {
	m.holds.mu.Lock()
	defer m.holds.mu.Unlock()
	return slices.Clone(m.holds.list)
}

// releaseHeld releases what the memtable holds.
func (m *Memtable) releaseHeld() {
	if !m.HoldsAny() {
		return
	}
	s := &m.holds
	s.mu.Lock()
	list := s.list
	s.list = nil
	s.mu.Unlock()
	for _, h := range list {
		h.Release()
	}
}
