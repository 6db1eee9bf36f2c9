package sstable

import "runtime"

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
