package kv

import "sync"

// iterParts are what an Iterator is made of beside itself: the sequences of the
// sorted runs, their merge, and the buffers of all of them. A short scan would spend
// more time on making them than on its entries, so that they are used again. The
// Iterator itself is not: one that was closed must stay closed for whoever still
// holds it.
type iterParts struct {
	merge mergingIter
	iters []internalIter
	runs  []*runIter
	key   []byte
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

// release gives the parts back, with the buffer of the iterator's key. They refer to
// nothing of the store any more.
func (p *iterParts) release(key []byte) {
	if cap(key) <= keptScratch {
		p.key = key[:0]
	}
	clear(p.iters)
	p.iters = p.iters[:0]
	p.merge.reset(nil)
	for _, it := range p.runs {
		if it.d != nil {
			it.release()
		}
	}
	partsPool.Put(p)
}
