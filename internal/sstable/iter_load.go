package sstable

import (
	"bytes"
	"io"
)

// How iterators come by blocks. A cached block is copied. Of others, the first few are read
// one by one, into the cache; then an iterator reads ahead in larger and larger pieces: a
// system call for each block would be a quarter of a scan's time. After a part of the cache's
// size, blocks no longer go into the cache: a pass over much of the store would evict
// everything else. A store that fits the cache ends up there after a few passes.

const (
	minRun        = 4         // blocks before reading ahead
	minReadAhead  = 16 << 10  // the first piece; each is twice the one before
	maxReadAhead  = 128 << 10 // a system call is nothing beside it, and a merge of many files stays small
	maxFilledPart = 4         // a run fills this part of the cache, one in four
)

// A blockRun is a run of blocks that a pass has read from the file one after the other.
type blockRun struct {
	next   int // number of the block that would go on with it
	blocks int
	bytes  int64 // decoded
}

// add counts a block that has to be read.
func (r *blockRun) add(n int) {
	if n != r.next {
		*r = blockRun{}
	}
	r.next = n + 1
	r.blocks++
}

// load returns a block's bytes: for a sequential pass in memory of their own, else in
// the iterator's. The copy out of the cache fetches the block's cache lines all at once:
// iterators that pinned the block instead were 8 % slower in full scans and 17 % in scans of 10.
func (i *Iter) load(loc location) ([]byte, error) {
	slot := &i.r.slots[loc.block]
	if i.sequential {
		if data, ok := i.r.cache.Pin(slot); ok {
			data = bytes.Clone(data)
			slot.Unpin()
			return data, nil
		}
		return i.loadAhead(loc, nil)
	}
	if i.r.mapped != nil {
		data, ok, err := i.r.copyMapped(i.data[:0], loc, &i.Probe)
		if ok || err != nil {
			i.data = data
			return data, err
		}
	}
	if data, ok := i.r.cache.Pin(slot); ok {
		i.Probe.BlocksFromCache++
		i.data = append(i.data[:0], data...)
		slot.Unpin()
		i.run = blockRun{}
		return i.data, nil
	}
	if i.run.add(loc.block); i.run.blocks > minRun {
		data, err := i.loadAhead(loc, &i.data)
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
	i.ahead.size = 0
	h, err := i.r.holdCold(dataBlock, loc, true, &i.Probe)
	if err != nil {
		return nil, err
	}
	i.data = append(i.data[:0], h.data...)
	i.run.bytes += int64(len(h.data))
	h.release()
	return i.data, nil
}

// loadAhead reads a block out of a larger piece of the file. It decodes the block into
// *buf, of which the result may be a part or not; with no buf, into memory of its own.
func (i *Iter) loadAhead(loc location, buf *[]byte) ([]byte, error) {
	offset, length := i.r.place(loc)
	data, c, err := i.stored(offset, length)
	if err != nil {
		return nil, err
	}
	switch {
	case buf == nil:
		data, err = decompress(nil, data, c)
	case c != NoCompression:
		if data, err = decompress(*buf, data, c); err == nil {
			*buf = data
		}
	}
	if err == nil {
		err = dataBlock.check(data)
	}
	if err != nil {
		return nil, i.r.corrupt(int64(offset), dataBlock.String(), err)
	}
	i.Probe.countRead(dataBlock, length, len(data))
	return data, nil
}

// stored returns a block as stored, valid until the next call: a part of the piece that
// was read ahead, if it could be.
func (i *Iter) stored(offset uint64, length int) ([]byte, Compression, error) {
	if raw := i.ahead.view(int64(offset), length); raw != nil && !i.r.closed.Load() {
		return i.r.stored(raw, dataBlock, offset)
	}
	return i.r.readStored(&i.raw, dataBlock, offset, length)
}

// A readAhead serves consecutive small reads of a file out of larger ones.
type readAhead struct {
	file  io.ReaderAt
	limit int64 // nothing after this offset is read ahead
	size  int   // of the last piece; the next is larger
	buf   []byte
	start int64 // file offset of buf
}

// view returns n bytes, valid until the next call, or nil if they have to be read on
// their own: they are many, or something after them could not be read.
func (a *readAhead) view(offset int64, n int) []byte {
	if offset < a.start || offset+int64(n) > a.start+int64(len(a.buf)) {
		a.size = min(max(2*a.size, minReadAhead), maxReadAhead)
		size := int(min(int64(a.size), a.limit-offset))
		if n >= size {
			return nil
		}
		if cap(a.buf) < size {
			a.buf = make([]byte, size)
		}
		a.buf, a.start = a.buf[:size], offset
		if readFull(a.file, a.buf, offset) != nil {
			a.buf = a.buf[:0]
			return nil
		}
	}
	at := int(offset - a.start)
	return a.buf[at : at+n : at+n]
}
