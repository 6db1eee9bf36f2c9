package sstable

import (
	"sync/atomic"

	"github.com/siftkv/siftkv/blockindex"
)

// Big leaves are index leaves that the reader's cache cannot keep: of files with huge separators, of writers that made
// leaves of 1 MiB, or of any file if the cache is tiny. To read and check one for each lookup would cost hundreds of
// times what the lookup does, so the reader keeps them itself, from the first lookup that needs one on.
type bigLeaves struct {
	most   int   // a leaf of more bytes is big
	bytes  int64 // of all, whether they are in memory yet or not
	leaves []atomic.Pointer[blockindex.Index]
}

// findBigLeaves returns the reader's big leaves, nil if it has none. With a cache that
// keeps nothing, leaves are not kept either: that is what the caller asked for.
func (r *Reader) findBigLeaves() *bigLeaves {
	b := &bigLeaves{most: r.cache.MaxBlock()}
	if r.leafBlocks == 0 || b.most == 0 {
		return nil
	}
	for i := range r.index.Len() {
		if _, length := r.index.Block(i); b.isBig(length) {
			b.bytes += int64(length - trailerSize)
		}
	}
	if b.bytes == 0 {
		return nil
	}
	b.leaves = make([]atomic.Pointer[blockindex.Index], r.index.Len())
	return b
}

// isBig reports whether a leaf is big, by its length with the trailer.
func (b *bigLeaves) isBig(length int) bool { return b != nil && length-trailerSize > b.most }

// bigLeaf returns big leaf i, which it reads if it is not in memory and keep is set. It returns nil if it is neither.
func (r *Reader) bigLeaf(i int, keep bool, p *Probe) (*blockindex.Index, error) {
	at := &r.big.leaves[i]
	if leaf := at.Load(); leaf != nil || !keep {
		return leaf, nil
	}
	_, _, err := r.shared(r.dataCount+i, func() (held, error) { return held{}, r.readBigLeaf(i, p) })
	return at.Load(), err
}

// readBigLeaf reads big leaf i and keeps it.
func (r *Reader) readBigLeaf(i int, p *Probe) error {
	at := &r.big.leaves[i]
	if at.Load() != nil {
		return nil // it has come since we looked
	}
	offset, length := r.index.Block(i)
	data, err := r.readBlock(new([]byte), indexLeaf, offset, length)
	if err != nil {
		return err
	}
	p.countRead(indexLeaf, length, len(data))
	leaf, err := r.viewLeaf(i, data)
	if err != nil {
		return err
	}
	at.Store(&leaf)
	return nil
}
