package fingerprint

import (
	"encoding/binary"
	"unsafe"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// A View is an array as a probe needs it. Over has checked once that the array has all
// its cells, so that reading one needs no check of bounds: with three or four cells in
// each probe, these cost packed and wide fingerprints a third of their time.
type View struct {
	cells unsafe.Pointer // keeps the array alive; nil in the filter of no keys
	bits  uint64         // of a fingerprint; 0 in the filter of no keys
	Salt  uint64         // what the seed changes in a hash
}

// Over makes v the view of an array of so many cells, or says false if it is none.
// Cells from the number on must not be asked for.
func (v *View) Over(array []byte, cells, bits uint64, seed uint32) bool {
	v.cells, v.bits, v.Salt = nil, 0, uint64(seed)*hash64.Golden
	if cells == 0 {
		return len(array) == 0 && Valid(bits)
	}
	if !Holds(array, cells, bits) {
		return false
	}
	v.cells, v.bits = unsafe.Pointer(unsafe.SliceData(array)), bits
	return true
}

// Arrays of bytes have no alignment, so that each conversion is valid at any cell.

func (v *View) octet(i uint64) byte { return *(*byte)(unsafe.Add(v.cells, i)) }

func (v *View) half(i uint64) uint16 {
	return binary.LittleEndian.Uint16((*[2]byte)(unsafe.Add(v.cells, 2*i))[:])
}

func (v *View) full(i uint64) uint32 {
	return binary.LittleEndian.Uint32((*[4]byte)(unsafe.Add(v.cells, 4*i))[:])
}

func (v *View) word(i uint64) uint64 {
	at := i * v.bits
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(v.cells, at/8))[:]) >> (at % 8)
}

// Match3 reports whether the cells a, b and c hold the fingerprint of z. In the filter of
// no keys none do.
func (v *View) Match3(z, a, b, c uint64) bool {
	switch v.bits {
	case 8:
		return v.octet(a)^v.octet(b)^v.octet(c) == byte(z)
	case 16:
		return v.half(a)^v.half(b)^v.half(c) == uint16(z)
	case 32:
		return v.full(a)^v.full(b)^v.full(c) == uint32(z)
	case 0:
		return false
	}
	x := z ^ v.word(a) ^ v.word(b) ^ v.word(c)
	return x<<(-v.bits%64) == 0
}

// Match4 is Match3 with a fourth cell.
func (v *View) Match4(z, a, b, c, d uint64) bool {
	switch v.bits {
	case 8:
		return v.octet(a)^v.octet(b)^v.octet(c)^v.octet(d) == byte(z)
	case 16:
		return v.half(a)^v.half(b)^v.half(c)^v.half(d) == uint16(z)
	case 32:
		return v.full(a)^v.full(b)^v.full(c)^v.full(d) == uint32(z)
	case 0:
		return false
	}
	x := z ^ v.word(a) ^ v.word(b) ^ v.word(c) ^ v.word(d)
	return x<<(-v.bits%64) == 0
}
