package sstable

import (
	"errors"
	"runtime"

	"github.com/siftkv/siftkv/blockindex"
)

// A location is a block: its number, and where it is, unless the index in memory tells. The latter
// is a cache miss, which a lookup of a cached block avoids.
type location struct {
	block  int
	offset uint64
	length int // with the trailer; 0: see the index
}

// place returns where a block is.
func (r *Reader) place(loc location) (offset uint64, length int) {
	if loc.length > 0 {
		return loc.offset, loc.length
	}
	offset, length = r.index.Block(loc.block)
	runtime.KeepAlive(r)
	return offset, length
}

// locationIn returns the data block of a leaf's entry, with its place: the leaf may be gone when that is needed.
func locationIn(leaf *blockindex.Index, at int) location {
	offset, length := leaf.Block(at)
	return location{block: leaf.First() + at, offset: offset, length: length}
}

// A leafMemo is the last index leaf that an iterator needed and the cache did not have.
type leafMemo struct {
	leaf  blockindex.Index
	full  bool
	ahead leavesAhead
}

// find returns the entry of the index in memory where a key would be looked for.
func (r *Reader) find(key []byte) int {
	i := r.index.Find(key)
	runtime.KeepAlive(r)
	return i
}

// locate returns the only data block that may hold key. It reports false if key
// is after the last block. A nil memo is none.
func (r *Reader) locate(key []byte, fill bool, memo *leafMemo, p *Probe) (loc location, ok bool, err error) {
	i := r.find(key)
	switch {
	case i == r.index.Len():
		return loc, false, nil
	case r.leafBlocks == 0:
		return location{block: i}, true, nil
	}
	leaf, h, err := r.holdLeaf(i, fill, memo, p)
	if err != nil {
		return loc, false, err
	}
	at := leaf.Find(key)
	if ok = at < leaf.Len(); ok {
		loc = locationIn(&leaf, at)
	}
	h.release()
	runtime.KeepAlive(r)
	return loc, ok, nil
}

// locateBlock returns where data block n is.
func (r *Reader) locateBlock(n int, fill bool, memo *leafMemo, p *Probe) (loc location, err error) {
	if r.leafBlocks == 0 {
		return location{block: n}, nil
	}
	leaf, h, err := r.holdLeaf(n/r.leafBlocks, fill, memo, p)
	if err != nil {
		return location{}, err
	}
	loc = locationIn(&leaf, n-leaf.First())
	h.release()
	runtime.KeepAlive(r)
	return loc, nil
}

// appendSeparator appends the separator of data block n to dst.
func (r *Reader) appendSeparator(dst []byte, n int, fill bool, memo *leafMemo, p *Probe) ([]byte, error) {
	if r.leafBlocks == 0 {
		dst = r.index.AppendSeparator(dst, n)
		runtime.KeepAlive(r)
		return dst, nil
	}
	leaf, h, err := r.holdLeaf(n/r.leafBlocks, fill, memo, p)
	if err != nil {
		return dst, err
	}
	dst = leaf.AppendSeparator(dst, n-leaf.First())
	h.release()
	runtime.KeepAlive(r)
	return dst, nil
}

// holdLeaf returns index leaf i, valid until h is released. A leaf that the cache did not take is kept in the memo: a
// pass over its blocks would read it again for each of them.
func (r *Reader) holdLeaf(i int, fill bool, memo *leafMemo, p *Probe) (leaf blockindex.Index, h held, err error) {
	if memo != nil && memo.full && memo.leaf.First() == i*r.leafBlocks {
		return memo.leaf, held{}, nil
	}
	offset, length := r.index.Block(i)
	if r.big.isBig(length) {
		if big, err := r.bigLeaf(i, fill, p); err != nil {
			return leaf, held{}, err
		} else if big != nil {
			return *big, held{}, nil
		}
	}
	if memo != nil && memo.ahead.follows(r, i) {
		if leaf, err = r.leafAhead(i, fill, &memo.ahead, p); err == nil {
			memo.leaf, memo.full = leaf, true
		}
		return leaf, held{}, err
	}
	h, err = r.hold(indexLeaf, location{r.dataCount + i, offset, length}, fill, p)
	if err != nil {
		return leaf, held{}, err
	}
	if leaf, err = r.viewLeaf(i, h.data); err != nil {
		h.release()
		return blockindex.Index{}, held{}, err
	}
	if memo != nil && h.slot == nil && h.shared == nil {
		// Its buffer never returns to the pool: iterators are not closed.
		memo.leaf, memo.full = leaf, true
		return leaf, held{}, nil
	}
	return leaf, h, nil
}

// viewLeaf returns a view of data, leaf i. A leaf with other block numbers or another
// place than the top index promises would send lookups to wrong blocks.
func (r *Reader) viewLeaf(i int, data []byte) (blockindex.Index, error) {
	leaf := blockindex.View(data)
	want := min(r.leafBlocks, r.dataCount-i*r.leafBlocks)
	if leaf.First() != i*r.leafBlocks || leaf.Len() != want || leaf.End() > r.props.DataBytes {
		offset, _ := r.index.Block(i)
		return blockindex.Index{}, r.corrupt(int64(offset), "index leaf",
			errors.New("blocks do not match the properties"))
	}
	return leaf, nil
}

// BlockOf returns the number of the only data block that may hold key, and false if the key is
// after all of them. It asks the index and no filter, and reads no data block.
func (r *Reader) BlockOf(key []byte) (block int, ok bool, err error) {
	var p Probe
	loc, ok, err := r.locate(key, true, nil, &p)
	return loc.block, ok, err
}

// BlockAbout is BlockOf without a read: if the index is in leaves, all that is known of the block is which leaf
// names it. Which of its blocks is returned is drawn by the hash of the key, and exact is false.
func (r *Reader) BlockAbout(key []byte, hash uint64) (block int, exact, ok bool) {
	i := r.index.Find(key)
	runtime.KeepAlive(r)
	switch {
	case i == r.index.Len():
		return 0, false, false
	case r.leafBlocks == 0:
		return i, true, true
	}
	first := i * r.leafBlocks
	return first + int(hash>>1%uint64(min(r.leafBlocks, r.dataCount-first))), false, true
}

// Cold reports whether an iterator that seeks key may have to read from the file: the block is not cached, or only
// index leaves on disk could tell.
func (r *Reader) Cold(key []byte) bool {
	if r.leafBlocks > 0 {
		return true
	}
	i := r.index.Find(key)
	runtime.KeepAlive(r)
	return i < r.dataCount && !r.slots[i].Filled()
}

// ColdEnd reports whether an iterator that goes to the first entry, or to the last, may have to read from the file.
func (r *Reader) ColdEnd(last bool) bool {
	n := 0
	if last {
		n = r.dataCount - 1
	}
	return r.dataCount > 0 && (r.leafBlocks > 0 || !r.slots[n].Filled())
}

// Cuts returns up to n keys, in order, that cut the file's blocks into parts of about the same
// size: none is before the first key, and each is a bound between two blocks. It reads leaves
// of a partitioned index where it has to, and no data.
func (r *Reader) Cuts(n int) (keys [][]byte, err error) {
	n = min(n, r.dataCount-1)
	var memo leafMemo
	var p Probe
	for i := range n {
		block := (i+1)*r.dataCount/(n+1) - 1
		key, err := r.appendSeparator(nil, block, false, &memo, &p)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}
