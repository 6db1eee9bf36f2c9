package sstable

// A prefix scan that ends where a block does would read the next one to learn that. The index knows already: the keys
// of a block are after the separator of the block before, and not after its own. So the last block with keys before an
// upper bound is the one in which the index finds that bound. The first with keys at or after a lower bound is found
// alike. Each is looked for once per file, when the iterator first reaches the end of a block.

// edges are the blocks between an iterator's bounds.
type edges struct {
	bounds      *Bounds // nil: none
	first, last edge
}

// An edge is the block in which the index finds a bound, as far as it is known.
type edge struct {
	top   bool  // entry and, in a file without leaves, block are known
	known bool  // block is known
	entry int32 // of the index in memory: a leaf, or the block
	block int32
}

// atEdge reports whether the next block in a direction, and so all after it, are past the bound there.
func (i *Iter) atEdge(step int) bool {
	b := i.edges.bounds
	switch {
	case b == nil:
		return false
	case step > 0:
		return b.Upper != nil && i.pastEdge(&i.edges.last, b.Upper, 1)
	}
	return b.Lower != nil && i.pastEdge(&i.edges.first, b.Lower, -1)
}

// pastEdge reports whether the block after i's, or before it, is on the other side of the block of a bound.
// It reads no leaf of the index but the one that has i's block: as long as that is another one than the
// bound's, the next block may be wanted.
func (i *Iter) pastEdge(e *edge, bound []byte, step int) bool {
	r, n := i.r, i.loc.block
	if !e.top {
		e.top, e.entry = true, int32(r.find(bound))
		e.block, e.known = e.entry, r.leafBlocks == 0
	}
	if !e.known {
		if leaf, edge := n/r.leafBlocks, int(e.entry); leaf != edge {
			return (leaf > edge) == (step > 0)
		}
		loc, ok, err := r.locate(bound, !i.sequential, &i.memo, &i.Probe)
		if err != nil {
			return false // the next read reports the error
		}
		if e.known, e.block = true, int32(loc.block); !ok {
			e.block = int32(r.dataCount)
		}
	}
	return step > 0 && n >= int(e.block) || step < 0 && n <= int(e.block)
}
