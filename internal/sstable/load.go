package sstable

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/siftkv/siftkv/blockindex"
	"github.com/siftkv/siftkv/internal/cache"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A blockKind says what a block's bytes must be.
type blockKind uint8

const (
	dataBlock blockKind = iota
	indexLeaf
	filterBlock
	rangeFilterBlock
)

// A held is a decoded block: pinned in the cache, in a buffer of its own, or shared with
// other goroutines. Its bytes are valid until release.
type held struct {
	data   []byte
	slot   *cache.Slot // pinned; nil: none
	buf    *[]byte     // of blockBuffers; nil: none
	shared *sharedRead // nil: not shared
}

func (h *held) release() {
	switch {
	case h.slot != nil:
		h.slot.Unpin()
	case h.shared != nil:
		h.shared.release()
	case h.buf != nil:
		blockBuffers.put(h.buf)
	}
	*h = held{}
}

// hold returns a decoded block: from the cache, or from the file, and then into the cache if fill is set. If another
// goroutine is reading it, it waits for that, and has what the other has; without fill it reads for itself. With
// buffers there, it allocates nothing.
func (r *Reader) hold(kind blockKind, loc location, fill bool, p *Probe) (h held, err error) {
	data, cached := r.cache.Pin(&r.slots[loc.block])
	switch {
	case cached:
		h = held{data: data, slot: &r.slots[loc.block]}
	case fill:
		h, cached, err = r.shared(loc.block, func() (held, error) { return r.holdFromFile(kind, loc, fill, p) })
	default:
		h, err = r.holdFromFile(kind, loc, fill, p)
	}
	if cached && err == nil && kind == dataBlock {
		p.BlocksFromCache++
	}
	return h, err
}

func (r *Reader) holdFromFile(kind blockKind, loc location, fill bool, p *Probe) (h held, err error) {
	offset, length := r.place(loc)
	asked := fill && kind == dataBlock && r.props.Compression == NoCompression
	if asked {
		if h, ok, err := r.holdAsStored(loc.block, offset, length, p); ok || err != nil {
			return h, err
		}
	}
	raw := blockBuffers.get()
	defer blockBuffers.put(raw)
	stored, c, err := r.readStored(raw, kind, offset, length, p)
	if err != nil {
		return held{}, err
	}
	fill = fill && (!asked || !r.cheap.Load()) // it was missed once, not twice
	if h, err = r.decode(kind, loc.block, stored, c, fill); err != nil {
		return held{}, r.corrupt(int64(offset), kind.String(), err)
	}
	p.countRead(kind, length, len(h.data))
	return h, nil
}

// holdAsStored reads a data block that is not compressed straight into the cache's memory,
// with its trailer behind it: another copy would cost a tenth of what the read does. It
// reports false if the cache does not take the block, or the block is another than it should be.
func (r *Reader) holdAsStored(n int, offset uint64, length int, p *Probe) (h held, ok bool, err error) {
	key, slot := r.slotKey(n), &r.slots[n]
	b := r.cache.ReserveMore(key, slot, length-trailerSize, trailerSize, r.cheap.Load(), r.owner)
	if b == nil {
		return held{}, false, nil
	}
	b = b[:length]
	data, c, err := r.readInto(b, dataBlock, offset, p)
	if ok = err == nil && c == NoCompression; ok {
		if err = checkBlock(data); err == nil {
			slot.Publish()
			p.countRead(dataBlock, length, len(data))
			return held{data: data, slot: slot}, true, nil
		}
		err = r.corrupt(int64(offset), dataBlock.String(), err)
	}
	r.cache.Abandon(key, slot, r.owner)
	return held{}, false, err
}

// decode decodes a block, and puts it into the cache if fill is set: straight into the
// cache's memory if its size is known before.
func (r *Reader) decode(kind blockKind, n int, stored []byte, c Compression, fill bool) (h held, err error) {
	size, err := compression.DecodedSize(stored, c)
	if err != nil {
		return held{}, err
	}
	key, slot := r.slotKey(n), &r.slots[n]
	var b []byte
	if fill && size >= 0 {
		b = r.cache.ReserveMore(key, slot, size, 0, kind == dataBlock && r.cheap.Load(), r.owner)
	}
	reserved := b != nil
	if !reserved {
		h.buf = blockBuffers.get()
		b = *h.buf
	}
	if h.data, err = compression.Decompress(b, stored, c); err == nil {
		err = kind.check(h.data)
	}
	switch {
	case err != nil && reserved:
		r.cache.Abandon(key, slot, r.owner)
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
		if cached, ok := r.insert(n, h.data, kind == dataBlock && r.cheap.Load()); ok {
			h.release()
			return cached, nil
		}
	}
	return h, nil
}

// insert copies a decoded block into the cache, if the cache takes it.
func (r *Reader) insert(n int, data []byte, cheap bool) (h held, ok bool) {
	slot := &r.slots[n]
	b := r.cache.ReserveMore(r.slotKey(n), slot, len(data), 0, cheap, r.owner)
	if b == nil {
		return held{}, false
	}
	copy(b, data)
	slot.Publish()
	return held{data: b, slot: slot}, true
}

// keep copies a decoded block into the cache or, if that does not take it, into a buffer.
func (r *Reader) keep(n int, data []byte) held {
	if h, ok := r.insert(n, data, false); ok {
		return h
	}
	buf := blockBuffers.get()
	*buf = append((*buf)[:0], data...)
	return held{data: *buf, buf: buf}
}

// readStored reads a block into buf and checks its checksum. The bytes returned are buf's.
func (r *Reader) readStored(buf *[]byte, kind blockKind, offset uint64, length int, p *Probe) ([]byte, Compression,
	error) {
	if cap(*buf) < length {
		*buf = make([]byte, length)
	}
	return r.readInto((*buf)[:length], kind, offset, p)
}

// readInto is readStored into raw, which is as long as the block with its trailer.
func (r *Reader) readInto(raw []byte, kind blockKind, offset uint64, p *Probe) ([]byte, Compression, error) {
	if r.closed.Load() {
		return nil, 0, ErrClosed
	}
	now := vfs.NowUnable
	if r.now != nil {
		if now = r.readNow(raw, int64(offset)); now == vfs.NowDone {
			return r.stored(raw, kind, offset)
		}
	}
	if p.Wait != nil {
		p.Wait(now == vfs.NowBegun)
	}
	if err := readFull(r.file, raw, int64(offset)); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, 0, r.corrupt(int64(offset), kind.String()+": the file ends inside it", nil)
		}
		return nil, 0, r.ioError(int64(offset), err)
	}
	data, c, err := r.stored(raw, kind, offset)
	if err != nil && r.again != nil {
		return r.readAgain(raw, kind, offset)
	}
	return data, c, err
}

// readNow reads into raw what the system has in memory, and notes whether it has.
func (r *Reader) readNow(raw []byte, offset int64) vfs.NowRead {
	now := r.now.ReadNow(raw, offset)
	if done := now == vfs.NowDone; r.cheap.Load() != done {
		r.cheap.Store(done)
	}
	return now
}

// nowFirst is a reader's file. What the system has in memory is read as readNow does.
type nowFirst struct{ r *Reader }

// ReadAt implements io.ReaderAt.
func (f nowFirst) ReadAt(p []byte, off int64) (int, error) {
	if f.r.now != nil && f.r.readNow(p, off) == vfs.NowDone {
		return len(p), nil
	}
	return f.r.file.ReadAt(p, off)
}

// stored checks what was read at offset, a block with its trailer, and returns the
// block as stored. It may be decoded without harm.
func (r *Reader) stored(raw []byte, kind blockKind, offset uint64) ([]byte, Compression, error) {
	stored, c, err := splitTrailer(raw, r.id, offset)
	if err == nil && c == Zstd && !r.expansion {
		var size int
		if size, err = compression.DecodedSize(stored, c); err == nil && compression.Expands(size, len(stored)) {
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
	buf := blockBuffers.get()
	defer blockBuffers.put(buf)
	stored, c, err := r.readStored(buf, kind, offset, length, new(Probe))
	if err != nil {
		return nil, err
	}
	data, err := compression.Decompress(*into, stored, c)
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
	return [...]string{"data block", "index leaf", "filter", "range filter"}[k]
}

func (k blockKind) check(data []byte) error {
	if k == indexLeaf {
		_, err := blockindex.Decode(data)
		return err
	}
	return checkBlock(data)
}

// TimeRead returns how long it takes to read a data block from the file, check and decode it, without the cache.
func (r *Reader) TimeRead(block int) (time.Duration, error) {
	var p Probe
	loc, err := r.locateBlock(block, false, nil, &p)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	h, err := r.holdFromFile(dataBlock, loc, false, &p)
	took := time.Since(begun)
	h.release()
	return took, err
}

// blockBuffers hold blocks as stored, between read and decompression, and decoded ones that the cache does not take.
var blockBuffers bufferPool

// maxPooled is the largest buffer that goes back to a pool: a giant one would be held for blocks of any size.
const maxPooled = 1 << 20

// A bufferPool keeps buffers for the next block.
type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

func (p *bufferPool) put(b *[]byte) {
	if cap(*b) <= maxPooled {
		p.pool.Put(b)
	}
}
