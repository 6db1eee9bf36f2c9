package memtable

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/offheap"
)

// A Memory gives memtables memory outside the Go heap. The next memtable uses it again after the
// last reader of one is gone. So the collector does not count it twice, and writers do not wait for
// page faults again. It is safe for concurrent use.
type Memory struct {
	Keep int // the capacity of memtables whose memory is kept for the next; that of others is freed

	// Taken, unless nil, counts the bytes that were taken and not released, including those kept
	// for the next memtable. It is set before the first use, and outlives the Memory.
	Taken *atomic.Int64

	mu     sync.Mutex
	spare  *recycled // of the last memtable that was released; nil: none
	closed bool
}

// A recycled is the memory of one memtable.
type recycled struct {
	owner *Memory
	counted
	layout layout
	forgot runtime.Cleanup
}

// A counted is memory and where it is counted, nil: nowhere. It does not lead to a memtable or its
// store, which the collector would otherwise never find forgotten.
type counted struct {
	region *offheap.Region
	taken  *atomic.Int64
	beside int // bytes in the heap that are counted with it
}

func (c counted) count(n int64) {
	if c.taken != nil {
		c.taken.Add(n)
	}
}

func (c counted) free() {
	c.count(-int64(len(c.region.Bytes()) + c.beside))
	c.region.Free()
}

// New is like the function New, in memory that is released: by Unref, by Drop, or by the
// collector if the memtable is forgotten without a Ref.
func (p *Memory) New(capacity int) *Memtable {
	l := layoutOf(capacity)
	mem := p.take(l)
	if mem == nil {
		mem = p.make(l)
	}
	return mem.table()
}

// NewForRecord is like the function of that name, on the terms of New.
func (p *Memory) NewForRecord(o *Order) *Memtable {
	return p.make(o.layout()).table()
}

func (p *Memory) make(l layout) *recycled {
	mem := &recycled{owner: p, counted: counted{offheap.New(l.size()), p.Taken, l.beside}, layout: l}
	mem.count(int64(l.size() + l.beside))
	return mem
}

// table returns an empty memtable in memory that is not in use.
func (mem *recycled) table() *Memtable {
	m := mem.layout.in(mem.region.Bytes())
	m.memory = mem
	mem.forgot = runtime.AddCleanup(m, counted.free, mem.counted)
	return m
}

// take returns the memory kept for the next memtable, cleared, if there is some with this layout.
func (p *Memory) take(l layout) *recycled {
	p.mu.Lock()
	mem := p.spare
	if l == layoutOf(p.Keep) {
		p.spare = nil
	} else {
		mem = nil
	}
	p.mu.Unlock()
	if mem != nil {
		clear(mem.region.Bytes()[:l.zeros()])
	}
	return mem
}

// Close frees the memory kept for the next memtable, and that of memtables that are released later.
func (p *Memory) Close() {
	p.mu.Lock()
	spare := p.spare
	p.spare, p.closed = nil, true
	p.mu.Unlock()
	if spare != nil {
		spare.free()
	}
}

// SetKeep changes Keep, and frees what was kept if it is of another capacity.
func (p *Memory) SetKeep(capacity int) {
	p.mu.Lock()
	p.Keep = capacity
	drop := p.spare
	if drop != nil && drop.layout == layoutOf(capacity) {
		drop = nil
	}
	if drop != nil {
		p.spare = nil
	}
	p.mu.Unlock()
	if drop != nil {
		drop.free()
	}
}

// Kept returns the bytes that are kept for the next memtable.
func (p *Memory) Kept() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spare == nil {
		return 0
	}
	return int64(p.spare.layout.size())
}

// Ref keeps the memory of a memtable, and what it holds, until Unref. It must not run concurrently
// with the Unref of the last reference.
func (m *Memtable) Ref() {
	if m.refs.Add(1) == 1 && m.memory != nil {
		m.memory.forgot.Stop() // a memtable with references is released by Unref only
	}
}

// Unref releases a reference. With the last one the memory goes to another memtable, and what is held is released: the
// keys and values of this one must not be used any more.
func (m *Memtable) Unref() {
	if m.refs.Add(-1) > 0 {
		return
	}
	m.releaseHeld()
	if mem := m.memory; mem != nil {
		m.poison()
		mem.owner.giveBack(mem)
	}
}

// Drop releases the memory of a memtable without references, and what it holds. The collector would do so later, as it
// does not know the size. If m has references, or is nil, Drop does nothing.
func (m *Memtable) Drop() {
	if m != nil {
		m.Ref()
		m.Unref()
	}
}

// poison overwrites what was written to a memtable that is released: its memory may
// become another's without being freed.
func (m *Memtable) poison() {
	used := m.used.Load()
	offheap.Poison(m.bytes[:used&math.MaxUint32])
	offheap.Poison(m.bytes[uint64(len(m.bytes))-used>>32:])
}

// giveBack keeps mem for the next memtable, in place of what was kept for it before.
func (p *Memory) giveBack(mem *recycled) {
	p.mu.Lock()
	drop := mem
	if !p.closed && mem.layout == layoutOf(p.Keep) {
		p.spare, drop = mem, p.spare
	}
	p.mu.Unlock()
	if drop != nil {
		drop.free()
	}
}
