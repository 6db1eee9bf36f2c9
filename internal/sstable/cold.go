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

// ColdEnd reports whether an iterator that goes to the first entry, or to the last, may have to read from the file.
func (r *Reader) ColdEnd(last bool) bool {
	n := 0
	if last {
		n = r.dataCount - 1
	}
	return r.dataCount > 0 && (r.leafBlocks > 0 || !r.slots[n].Filled())
}
