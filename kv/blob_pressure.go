package kv

// Writers are slowed down before blob files are over their limit by what one batch of collection, or
// two memtables, take, and wait when they are. What waits in memtables to be flushed counts, and what commits wrote
// apart of it: it comes in any case. Nobody waits when nothing is being done that could make space, or when that fails.
//
// A merge that a caller asked for may keep collection from all of a store, for as long as it takes. Writers do not
// wait for it, but they are slowed down like beside any other: what they add to the space meanwhile is bounded by
// slowRate, where fast overwrites would take several times the data. The copying after it goes batch by batch, and
// makes space itself: writers wait for it.

// blobPressure says how badly writers have to be slowed down for blob files: not at 0, most from 1 on,
// where they wait. The caller holds d.mu.
func (d *DB) blobPressure() float64 {
	if d.current == nil || d.current.BlobTotals().Files == 0 {
		return 0
	}
	s := d.blobSpace(d.current)
	over := s.over()
	for _, m := range d.imms {
		over += float64(m.Size())
	}
	for _, b := range heldBy(d.imms) {
		if b.log != nil {
			over += float64(b.Size) // no more than a memtable's, while a stream may have any length
		}
	}
	room := max(s.batch, 2*float64(d.opts.MemtableSize))
	return max(over-room/2, 0) / (room / 2)
}

// slowsForBlobs is blobPressure, of 1 at the most, as long as something runs, or is about to, that could make space:
// what tables that are left alone may hide does not go away by waiting. The caller holds d.mu.
func (d *DB) slowsForBlobs() float64 {
	s := &d.compactions
	if s.running == 0 && len(d.imms) == 0 && !d.background().waits() {
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
	return s.running > 0 || d.background().waits() || len(d.imms) > 0
}
