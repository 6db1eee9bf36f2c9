package kv

import "github.com/siftkv/siftkv/internal/values"

// Blob files may exceed their limit by what one batch of blob GC or two memtables take, whichever is more. Writers are
// slowed down beyond half of that, and wait at all of it. Memtables that wait to be flushed count, and so do the blob
// files that commits wrote for them: their bytes come in any case. Writers do not wait when nothing runs that could
// free space, or when compactions fail.
//
// A merge that a caller asked for may keep blob GC from the whole store for as long as it takes. Writers do not wait
// for it, but they are slowed down as during any other. So slowRate bounds what they add meanwhile, where fast
// overwrites would take several times the data. The copying after the merge goes batch by batch and frees space
// itself: writers wait for it.

// blobPressure returns how much writers must be slowed down for blob files: not at all at 0; at 1 and more they wait.
// The caller holds d.mu.
func (d *DB) blobPressure() float64 {
	if d.current == nil || d.current.BlobTotals().Files == 0 {
		return 0
	}
	s := d.blobSpace(d.current)
	over := s.Over()
	for _, m := range d.imms {
		over += float64(m.Size())
	}
	over += float64(values.LogBytes(d.imms)) // no more than a memtable's, while a stream may have any length
	room := max(s.Batch, 2*float64(d.opts.MemtableSize))
	return max(over-room/2, 0) / (room / 2)
}

// slowsForBlobs is blobPressure, at most 1, while something runs, or is about to, that could free space. Else it is 0:
// to wait does not free what tables that are left alone hide. The caller holds d.mu.
func (d *DB) slowsForBlobs() float64 {
	s := &d.compactions
	if s.running == 0 && len(d.imms) == 0 && !d.share.Background().Pending() {
		return 0
	}
	return min(d.blobPressure(), 1)
}

// makesBlobSpace reports whether there is a compaction to wait for. The caller holds d.mu.
func (d *DB) makesBlobSpace() bool {
	s := &d.compactions
	if s.cause != nil || s.paused || s.merges > 0 {
		return false
	}
	d.scheduleCompactionsLocked()
	return s.running > 0 || d.share.Background().Pending() || len(d.imms) > 0
}
