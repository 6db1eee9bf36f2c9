package kv

import (
	"sync"

	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
)

// iterParts are what an Iterator is made of beside itself: the sequences of memtables,
// files of level 0 and sorted runs, their merge, and the buffers of all of them. A short scan would spend
// more time on making them than on its entries, so that they are used again. The
// Iterator itself is not: one that was closed must stay closed for whoever still
// holds it.
type iterParts struct {
	merge  mergingIter
	iters  []internalIter
	runs   []*runIter
	tables []*tableIter // of level 0; the first usedTables are in use
	mems   []*memIter   // the first usedMems are in use
	key    []byte
	newer  []byte // of passNewer
	behind []byte // of newestFirst

	usedTables, usedMems int
}

var partsPool = sync.Pool{New: func() any { return new(iterParts) }}

func takeIterParts() *iterParts { return partsPool.Get().(*iterParts) }

// takeRuns returns the iterators of n sorted runs, to be reset.
func (p *iterParts) takeRuns(n int) []*runIter {
	for len(p.runs) < n {
		p.runs = append(p.runs, &runIter{})
	}
	return p.runs[:n]
}

// tableIter returns an iterator over a table of level 0, whose reader is r.
func (p *iterParts) tableIter(t *version.Table, r *sstable.Reader) *tableIter {
	if p.usedTables == len(p.tables) {
		p.tables = append(p.tables, &tableIter{})
	}
	it := p.tables[p.usedTables]
	p.usedTables++
	it.t = t
	it.Init(r, sstable.IterOptions{})
	return it
}

// memIter returns an iterator over the points of a memtable.
func (p *iterParts) memIter(m *memTable) *memIter {
	if p.usedMems == len(p.mems) {
		p.mems = append(p.mems, &memIter{})
	}
	it := p.mems[p.usedMems]
	p.usedMems++
	it.Init(m)
	return it
}

// keptTables bounds the iterators of tables that are kept, each with the buffer of a block.
const keptTables = 32

// release gives the parts back, with the buffer of the iterator's key. They refer to
// nothing of the store any more.
func (p *iterParts) release(key []byte) {
	if cap(key) <= keptScratch {
		p.key = key[:0]
	}
	if cap(p.newer) > keptScratch {
		p.newer = nil
	}
	if cap(p.behind) > keptScratch {
		p.behind = nil
	}
	clear(p.iters)
	p.iters = p.iters[:0]
	p.merge.reset(nil)
	for _, it := range p.runs {
		if it.d != nil {
			it.release()
		}
	}
	for _, it := range p.tables[:p.usedTables] {
		it.t = nil
		it.Release()
	}
	for _, it := range p.mems[:p.usedMems] {
		*it = memIter{}
	}
	if len(p.tables) > keptTables {
		clear(p.tables[keptTables:])
		p.tables = p.tables[:keptTables]
	}
	p.usedTables, p.usedMems = 0, 0
	partsPool.Put(p)
}
