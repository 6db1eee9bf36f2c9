package sstable

import "runtime"

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

// ColdFirst is Cold for First.
func (r *Reader) ColdFirst() bool { return r.coldBlock(0) }

// ColdLast is Cold for Last.
func (r *Reader) ColdLast() bool { return r.coldBlock(r.dataCount - 1) }

func (r *Reader) coldBlock(n int) bool {
	if n < 0 || n >= r.dataCount {
		return false
	}
	return r.leafBlocks > 0 || !r.slots[n].Filled()
}
