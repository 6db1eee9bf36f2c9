package sstable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A file without compression can be read where the system has it in memory: a lookup
// then neither calls the system nor copies a block, however small the cache.
//
// A block's checksum is verified when it is first touched; bytes that the system drops from
// memory and reads again are trusted.
//
// The processor reports what cannot be read (a file that was truncated, a device that
// fails) as a fault, of which unguard makes an error; nothing that aliases the mapping gets out.
type mapping struct {
	data     []byte
	unmap    func() error
	verified []atomic.Uint64 // a bit for each data block
}

// mapFile maps the reader's file if that is possible.
func (r *Reader) mapFile() {
	f, ok := r.file.(vfs.Mapper)
	if !ok || r.props.Compression != NoCompression || r.dataCount == 0 {
		return
	}
	data, unmap, err := f.Map(r.size)
	if err != nil {
		return // reading works as well
	}
	r.mapped = &mapping{data: data, unmap: unmap, verified: make([]atomic.Uint64, (r.dataCount+63)/64)}
}

// mappedBlock returns a data block's bytes in the mapping. It reports false if the block is one that has to be decoded.
func (r *Reader) mappedBlock(loc location, p *Probe) (data []byte, ok bool, err error) {
	m := r.mapped
	if r.closed.Load() {
		return nil, false, ErrClosed // the addresses may be in other use by now
	}
	offset, length := r.place(loc)
	raw := m.data[offset : offset+uint64(length)]
	word, bit := &m.verified[loc.block>>6], uint64(1)<<(loc.block&63)
	verified := word.Load()&bit != 0
	if verified && !emptied(raw) {
		p.BlocksFromCache++
		return raw[:len(raw)-trailerSize], true, nil
	}
	data, c, err := splitTrailer(raw, r.id, offset)
	if err == nil {
		if c != NoCompression {
			return nil, false, nil
		}
		err = dataBlock.check(data)
	}
	switch {
	case err != nil && verified:
		return nil, false, r.ioError(int64(offset), errEmptied)
	case err != nil:
		return nil, false, r.corrupt(int64(offset), dataBlock.String(), err)
	}
	word.Or(bit)
	p.countRead(dataBlock, len(raw), len(data))
	return data, true, nil
}

var errEmptied = errors.New("the mapped file has lost what was here: it was truncated")

// emptied reports whether a block that was verified may have lost its end. Reading the last page of a truncated file is
// no fault: it ends with zeros. A block that ends with zeros may be one in which every key is absent. Its checksum is
// after them, and zero as well, as is that of one whole block in 2^32.
func emptied(raw []byte) bool { return binary.LittleEndian.Uint32(raw[len(raw)-4:]) == 0 }

// findMapped searches a block of the mapping and appends the value to dst if the caller wants it.
func (r *Reader) findMapped(dst []byte, loc location, s *search, p *Probe) (out []byte, f found, ok bool, err error) {
	out = dst // also after a fault
	defer r.unguard(debug.SetPanicOnFault(true), &err)
	data, ok, err := r.mappedBlock(loc, p)
	if err != nil || !ok {
		return dst, found{}, ok, err
	}
	dst, f, err = s.in(data, dst, p)
	return dst, f, true, err
}

// copyMapped copies a block of the mapping into the iterator's buffer.
func (i *Iter) copyMapped(loc location) (ok bool, err error) {
	defer i.r.unguard(debug.SetPanicOnFault(true), &err)
	data, ok, err := i.r.mappedBlock(loc, &i.Probe)
	if ok {
		i.copyBlock(data)
	}
	return ok, err
}

// unguard is deferred by what reads the mapping, with what SetPanicOnFault(true)
// returned. It makes an error of a fault in the mapping; other panics go on.
func (r *Reader) unguard(old bool, err *error) {
	debug.SetPanicOnFault(old)
	e := recover()
	if e == nil {
		return
	}
	fault, ok := e.(interface {
		runtime.Error
		Addr() uintptr
	})
	if !ok {
		panic(e)
	}
	// The address may be that of the page or of the access, and of no access at all on
	// some systems, so only a fault that is surely elsewhere is passed on.
	at := int64(fault.Addr()) - int64(uintptr(unsafe.Pointer(unsafe.SliceData(r.mapped.data))))
	if at < 0 || at >= int64(len(r.mapped.data)) {
		panic(e)
	}
	*err = r.ioError(at, fmt.Errorf("the mapped file cannot be read here: it was truncated, or its device fails: %w",
		fault))
}
