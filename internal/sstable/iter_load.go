package sstable

import (
	"slices"

	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/vfs"
)

// How iterators read blocks. A cached block is copied. Uncached blocks are read several at a time, in pieces of the
// file: a system call costs as much as two blocks. After a seek, the piece has as many blocks as the iterator used
// after earlier seeks, or one block if it learns that this was too little. With the fifth block in a row, and after a
// piece of several, pieces become larger and larger. After a part of the cache's size, blocks no longer go into the
// cache: a pass over much of the store would evict everything else. A store that fits the cache is in it after a few
// passes. Where the system has the file in memory, a full cache takes only blocks that are missed again (cache.ring).
//
// In a file that is read in parts a piece is a request (parts.go). Cached blocks end no run there. It may go backward.

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
// looks for. The copy out of the cache fetches the block's cache lines at once. Iterators that pinned the block were
// 8 % slower in full scans and 17 % in scans of 10. Copies of the part around the key alone were 8 % slower there.
func (i *Iter) load(loc location, key []byte) ([]byte, error) {
	slot := &i.r.slots[loc.block]
	if i.r.mapped != nil && !i.sequential {
		ok, err := i.copyMapped(loc)
		if ok || err != nil {
			return i.data, err
		}
	}
	if data, ok := i.r.cache.Pin(slot); ok {
		if !i.sequential {
			i.Probe.BlocksFromCache++
		}
		i.copyBlock(data)
		slot.Unpin()
		if i.r.part > 0 {
			i.run.pass(loc.block)
		} else {
			i.run = blockRun{}
		}
		return i.data, nil
	}
	switch {
	case i.sequential:
	case i.r.part > 0:
		i.addFar(loc, key)
	default:
		if i.run.add(loc.block); i.run.blocks == 1 {
			i.ahead.size = i.foreseen(loc, key)
		}
	}
	pieces := i.ahead.size > 0 || i.run.blocks > i.ahead.pace.run
	offset, length := i.r.place(loc)
	var raw []byte
	switch {
	case i.ahead.foreseen && !i.ahead.has(int64(offset), length): // what is not in memory is read once for all
		if raw = i.viewNow(&i.ahead.buf, offset, i.ahead.size); raw != nil {
			i.ahead.start, i.ahead.foreseen, raw = int64(offset), false, raw[:length:length]
		}
	case pieces:
		raw = i.view(offset, length)
	case i.r.now != nil:
		raw = i.viewNow(&i.raw, offset, length)
	}
	if raw == nil && (!pieces || i.ahead.foreseen) {
		return i.loadShared(loc, offset, length)
	}
	data, err := i.unpack(raw, offset, length)
	if err != nil || i.sequential {
		return data, err
	}
	if i.run.bytes += int64(len(data)); i.run.bytes < i.r.cache.Capacity()/maxFilledPart {
		if h, ok := i.r.insert(loc.block, data, i.r.cheap.Load() && !i.stride.pages); ok {
			h.release()
		}
	}
	return data, nil
}

// loadShared is load for a block that has to be waited for, and no run has begun. Other goroutines that want it wait
// for it, and so does the iterator if another reads it.
func (i *Iter) loadShared(loc location, offset uint64, length int) ([]byte, error) {
	h, cached, err := i.r.shared(loc.block, func() (h held, err error) {
		if !i.ahead.foreseen {
			return i.r.holdFromFile(dataBlock, loc, true, &i.Probe)
		}
		data, err := i.unpack(i.view(offset, length), offset, length)
		if err == nil {
			h = i.r.keep(loc.block, data)
		}
		return h, err
	})
	if err != nil {
		return nil, err
	}
	if cached {
		i.Probe.BlocksFromCache++
	}
	i.copyBlock(h.data)
	i.run.bytes += int64(len(h.data))
	h.release()
	return i.data, nil
}

// view returns a block as it is in the file out of a piece; nil if it is in none.
func (i *Iter) view(offset uint64, length int) []byte {
	if i.inParts(int64(offset), length) {
		return i.far.parts.view(i, int64(offset), length)
	}
	return i.ahead.view(int64(offset), length)
}

// viewNow returns a part of the file in *buf, if the system has that in memory.
func (i *Iter) viewNow(buf *[]byte, offset uint64, n int) []byte {
	*buf = slices.Grow((*buf)[:0], n)
	if i.r.now == nil || i.r.closed.Load() || i.r.readNow((*buf)[:n], int64(offset)) != vfs.NowDone {
		return nil
	}
	*buf = (*buf)[:n]
	return *buf
}

// unpack checks a block as it is in the file, and decodes it into the iterator's buffer: most blocks go nowhere else,
// and the processor's cache has that. It reads a nil one, and one that was damaged on its way.
func (i *Iter) unpack(raw []byte, offset uint64, length int) (data []byte, err error) {
	var c Compression
	if raw != nil && !i.r.closed.Load() {
		data, c, err = i.r.stored(raw, dataBlock, offset)
	}
	if data == nil && (err == nil || i.r.again != nil) {
		data, c, err = i.r.readStored(&i.raw, dataBlock, offset, length, &i.Probe)
	}
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
