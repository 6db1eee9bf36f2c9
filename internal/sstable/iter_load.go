package sstable

import "github.com/siftkv/siftkv/internal/compression"

// How iterators read blocks. A cached block is copied. Uncached blocks are read several at a time, in pieces of the
// file: a system call costs as much as two blocks. After a seek, the piece has as many blocks as the iterator used
// after earlier seeks, or one block if it learns that this was too little. With the fifth block in a row, and after a
// piece of several, pieces become larger and larger. After a part of the cache's size, blocks no longer go into the
// cache: a pass over much of the store would evict everything else. A store that fits the cache is in it after a few
// passes.
//
// In a file that is read in parts, a piece is a request: see parts.go. There, cached blocks do not end a run, and a run
// may go backward.

// maxFilledPart: a run fills this part of the cache, one in four.
const maxFilledPart = 4

// A blockRun is a run of blocks that a pass has read from the file one after the other.
type blockRun struct {
	next   int // number of the block that would go on with it
	blocks int
	bytes  int64 // decoded

	backward bool // of a file that is read in parts
}

// add counts a block that has to be read.
func (r *blockRun) add(n int) {
	if n != r.next {
		*r = blockRun{}
	}
	r.next = n + 1
	r.blocks++
}

// addFar is add for a file that is read in parts: the run may go backward.
func (r *blockRun) addFar(n int, seek bool) {
	r.backward = r.blocks > 0 && n == r.next-2 && !seek
	if r.backward {
		r.next = n
	}
	backward := r.backward
	r.add(n)
	r.backward = backward
}

// pass goes past a block that need not be read, in a file that is read in parts.
func (r *blockRun) pass(n int) {
	switch {
	case n == r.next && !r.backward:
		r.next++
	case r.backward && n == r.next-2:
		r.next--
	default:
		*r = blockRun{}
	}
}

// load returns a block's bytes, in memory that the next call uses again: a compaction that took new memory for each
// block made several times the garbage of everything else in the process. A key that is not nil is what the iterator
// looks for. The copy out of the cache fetches the block's cache lines all at once. Iterators that pinned the block
// instead were 8 % slower in full scans and 17 % in scans of 10. Those that copied only the part around the key were 8
// % slower in scans of 10.
func (i *Iter) load(loc location, key []byte) ([]byte, error) {
	slot := &i.r.slots[loc.block]
	if i.sequential {
		if data, ok := i.r.cache.Pin(slot); ok {
			i.data = append(i.data[:0], data...)
			slot.Unpin()
			return i.data, nil
		}
		return i.loadAhead(loc)
	}
	if i.r.mapped != nil {
		ok, err := i.copyMapped(loc)
		if ok || err != nil {
			return i.data, err
		}
	}
	if data, ok := i.r.cache.Pin(slot); ok {
		i.Probe.BlocksFromCache++
		i.copyBlock(data)
		slot.Unpin()
		if i.r.part > 0 {
			i.run.pass(loc.block)
		} else {
			i.run = blockRun{}
		}
		return i.data, nil
	}
	if i.r.part > 0 {
		i.addFar(loc, key)
	} else if i.run.add(loc.block); i.run.blocks == 1 {
		i.ahead.size = i.foreseen(loc, key)
	}
	if i.ahead.foreseen {
		return i.loadForeseen(loc)
	}
	if i.ahead.size > 0 || i.run.blocks > i.ahead.pace.run {
		data, err := i.loadAhead(loc)
		if err != nil {
			return nil, err
		}
		if i.run.bytes += int64(len(data)); i.run.bytes < i.r.cache.Capacity()/maxFilledPart {
			if h, ok := i.r.insert(loc.block, data); ok {
				h.release()
			}
		}
		return data, nil
	}
	h, err := i.r.holdCold(dataBlock, loc, true, &i.Probe)
	if err != nil {
		return nil, err
	}
	i.copyBlock(h.data)
	i.run.bytes += int64(len(h.data))
	h.release()
	return i.data, nil
}

// loadForeseen is load for the first block after a seek, where the piece of the file has more than that block. Other
// goroutines that want the block wait for it, and so does the iterator if another reads it.
func (i *Iter) loadForeseen(loc location) ([]byte, error) {
	if other := i.r.reading.begin(loc.block); other != nil {
		h, err := other.take()
		if err == nil {
			i.copyHeld(&h)
		}
		return i.data, err
	}
	var h held
	ended := false
	defer i.r.reading.guard(loc.block, &ended)
	if data, ok := i.r.cache.Pin(&i.r.slots[loc.block]); ok { // it has come since load looked
		ended = true
		h = held{data: data, slot: &i.r.slots[loc.block]}
		h, _ = i.r.reading.end(loc.block, h, nil)
		i.copyHeld(&h)
		return i.data, nil
	}
	data, err := i.loadAhead(loc)
	if err == nil {
		i.run.bytes += int64(len(data))
		h = i.r.keep(loc.block, data)
	}
	ended = true
	h, err = i.r.reading.end(loc.block, h, err)
	h.release()
	return data, err
}

// copyHeld copies a block that was read by another, and releases it.
func (i *Iter) copyHeld(h *held) {
	i.Probe.BlocksFromCache++
	i.copyBlock(h.data)
	h.release()
}

// loadAhead reads a block out of a larger piece of the file. The result is in i.data, or in
// the piece: valid until the next call.
func (i *Iter) loadAhead(loc location) ([]byte, error) {
	offset, length := i.r.place(loc)
	data, c, err := i.stored(offset, length)
	if err != nil {
		return nil, err
	}
	if c != NoCompression {
		if data, err = compression.Decompress(i.data, data, c); err == nil {
			i.data = data
		}
	}
	if err == nil {
		err = dataBlock.check(data)
	}
	if err != nil {
		return nil, i.r.corrupt(int64(offset), dataBlock.String(), err)
	}
	i.Probe.countRead(dataBlock, length, len(data))
	if i.r.part > 0 && i.far != nil {
		i.far.Pass.count(i, length)
	}
	return data, nil
}

// stored returns a block as stored, valid until the next call. It is part of a prefetched piece, if possible.
func (i *Iter) stored(offset uint64, length int) ([]byte, Compression, error) {
	var raw []byte
	if i.inParts(int64(offset), length) {
		raw = i.far.parts.view(i, int64(offset), length)
	} else {
		raw = i.ahead.view(int64(offset), length)
	}
	if raw != nil && !i.r.closed.Load() {
		data, c, err := i.r.stored(raw, dataBlock, offset)
		if err == nil || i.r.again == nil {
			return data, c, err
		}
	}
	return i.r.readStored(&i.raw, dataBlock, offset, length, &i.Probe)
}
