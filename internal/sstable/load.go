package sstable

import (
	"errors"
	"io"
	"runtime"

	"github.com/siftkv/siftkv/blockindex"
	"github.com/siftkv/siftkv/internal/cache"
)

// A blockKind says what a block's bytes must be.
type blockKind uint8

const (
	dataBlock blockKind = iota
	indexLeaf
)

// A held is a decoded block: pinned in the cache, or in a buffer of its own. Its
// bytes are valid until release.
type held struct {
	data []byte
	slot *cache.Slot // pinned; nil: none
	buf  *[]byte     // of blockBuffers; nil: none
}

func (h *held) release() {
	switch {
	case h.slot != nil:
		h.slot.Unpin()
	case h.buf != nil:
		blockBuffers.put(h.buf)
	}
	*h = held{}
}

// hold returns a decoded block: from the cache, or from the file, and then into the
// cache if fill is set. It allocates nothing once buffers are there.
func (r *Reader) hold(kind blockKind, loc location, fill bool, p *Probe) (held, error) {
	slot := &r.slots[loc.block]
	if data, ok := r.cache.Pin(slot); ok {
		if kind == dataBlock {
			p.BlocksFromCache++
		}
		return held{data: data, slot: slot}, nil
	}
	return r.holdCold(kind, loc, fill, p)
}

// holdCold is hold for a block that was not in the cache. If another goroutine is
// reading it for the cache, it waits for that; if that fails, it reads for itself.
func (r *Reader) holdCold(kind blockKind, loc location, fill bool, p *Probe) (held, error) {
	loc.offset, loc.length = r.place(loc)
	if !fill || loc.length-trailerSize > r.cache.MaxBlock() {
		return r.holdFromFile(kind, loc, fill, p)
	}
	if r.reading.begin(loc.block) {
		defer r.reading.end(loc.block)
	}
	slot := &r.slots[loc.block]
	if data, ok := r.cache.Pin(slot); ok { // it has come since we looked
		if kind == dataBlock {
			p.BlocksFromCache++
		}
		return held{data: data, slot: slot}, nil
	}
	return r.holdFromFile(kind, loc, fill, p)
}

func (r *Reader) holdFromFile(kind blockKind, loc location, fill bool, p *Probe) (h held, err error) {
	offset, length := r.place(loc)
	raw := readBuffers.get()
	defer readBuffers.put(raw)
	stored, c, err := r.readStored(raw, kind, offset, length)
	if err != nil {
		return held{}, err
	}
	h, err = r.decode(kind, loc.block, stored, c, fill)
	if err != nil {
		return held{}, r.corrupt(int64(offset), kind.String(), err)
	}
	p.countRead(kind, length, len(h.data))
	return h, nil
}

// decode decodes a block, and puts it into the cache if fill is set: straight into the
// cache's memory if its size is known before.
func (r *Reader) decode(kind blockKind, n int, stored []byte, c Compression, fill bool) (h held, err error) {
	size, err := decodedSize(stored, c)
	if err != nil {
		return held{}, err
	}
	key, slot := r.slotKey(n), &r.slots[n]
	var b []byte
	if fill && size >= 0 {
		b = r.cache.Reserve(key, slot, size)
	}
	reserved := b != nil
	if !reserved {
		h.buf = blockBuffers.get()
		b = *h.buf
	}
	if h.data, err = decompress(b, stored, c); err == nil {
		err = kind.check(h.data)
	}
	switch {
	case err != nil && reserved:
		r.cache.Abandon(key, slot)
		return held{}, err
	case err != nil:
		h.release()
		return held{}, err
	case reserved:
		slot.Publish()
		h.slot = slot
		return h, nil
	}
	*h.buf = h.data[:0]
	if fill && size < 0 {
		if cached, ok := r.insert(n, h.data); ok {
			h.release()
			return cached, nil
		}
	}
	return h, nil
}

// insert copies a decoded block into the cache, if the cache takes it.
func (r *Reader) insert(n int, data []byte) (h held, ok bool) {
	slot := &r.slots[n]
	b := r.cache.Reserve(r.slotKey(n), slot, len(data))
	if b == nil {
		return held{}, false
	}
	copy(b, data)
	slot.Publish()
	return held{data: b, slot: slot}, true
}

// readStored reads a block into buf and checks its checksum. The bytes returned are
// buf's.
func (r *Reader) readStored(buf *[]byte, kind blockKind, offset uint64, length int) ([]byte, Compression, error) {
	if r.closed.Load() {
		return nil, 0, ErrClosed
	}
	if cap(*buf) < length {
		*buf = make([]byte, length)
	}
	raw := (*buf)[:length]
	if err := readFull(r.file, raw, int64(offset)); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, 0, r.corrupt(int64(offset), kind.String()+": the file ends inside it", nil)
		}
		return nil, 0, r.ioError(int64(offset), err)
	}
	return r.stored(raw, kind, offset)
}

// stored checks what was read at offset, a block with its trailer, and returns the
// block as stored. It may be decoded without harm.
func (r *Reader) stored(raw []byte, kind blockKind, offset uint64) ([]byte, Compression, error) {
	stored, c, err := splitTrailer(raw, r.id, offset)
	if err == nil && c == Zstd && !r.expansion {
		var size int
		if size, err = decodedSize(stored, c); err == nil && expands(size, len(stored)) {
			err = errExpansion
		}
	}
	if err != nil {
		return nil, 0, r.corrupt(int64(offset), kind.String(), err)
	}
	return stored, c, nil
}

// readBlock reads, checks and decompresses a block, past the cache and into *into.
func (r *Reader) readBlock(into *[]byte, kind blockKind, offset uint64, length int) ([]byte, error) {
	buf := readBuffers.get()
	defer readBuffers.put(buf)
	stored, c, err := r.readStored(buf, kind, offset, length)
	if err != nil {
		return nil, err
	}
	data, err := decompress(*into, stored, c)
	if err == nil {
		*into = data
		err = kind.check(data)
	}
	if err != nil {
		return nil, r.corrupt(int64(offset), kind.String(), err)
	}
	return data, nil
}

func (k blockKind) String() string {
	if k == indexLeaf {
		return "index leaf"
	}
	return "data block"
}

func (k blockKind) check(data []byte) error {
	if k == indexLeaf {
		_, err := blockindex.Decode(data)
		return err
	}
	return checkBlock(data)
}

// A location is a block: its number, and where it is, unless that is to be asked of the index in
// memory, at the price of a cache miss that a lookup of a cached block need not pay.
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
	return r.index.Block(loc.block)
}

// locationIn returns the data block of a leaf's entry. The leaf may be gone when its
// place is asked for.
func locationIn(leaf *blockindex.Index, at int) location {
	offset, length := leaf.Block(at)
	return location{block: leaf.First() + at, offset: offset, length: length}
}

// A leafMemo is the last index leaf that an iterator needed and the cache did not have.
type leafMemo struct {
	leaf blockindex.Index
	full bool
}

// locate returns the only data block that may hold key. It reports false if key
// is after the last block. A nil memo is none.
func (r *Reader) locate(key []byte, fill bool, memo *leafMemo, p *Probe) (loc location, ok bool, err error) {
	i := r.index.Find(key)
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
		return r.index.AppendSeparator(dst, n), nil
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

// holdLeaf returns index leaf i, valid until h is released. A leaf that the cache did
// not take is kept in the memo: a pass over its blocks would read it again for each of
// them.
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
	h, err = r.hold(indexLeaf, location{r.dataCount + i, offset, length}, fill, p)
	if err != nil {
		return leaf, held{}, err
	}
	if leaf, err = r.viewLeaf(i, h.data); err != nil {
		h.release()
		return blockindex.Index{}, held{}, err
	}
	if memo != nil && h.slot == nil {
		// Its buffer never returns to the pool: nobody closes an iterator.
		*memo = leafMemo{leaf: leaf, full: true}
		return leaf, held{}, nil
	}
	return leaf, h, nil
}

// viewLeaf returns a view of data, leaf i. A leaf whose block numbers or place are not
// those that the top index promises would send lookups to wrong blocks.
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
