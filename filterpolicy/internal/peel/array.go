package peel

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Bounds of the bits of a fingerprint. Below four bits a filter is hardly worth its
// probe; 32 bits fit eight bytes at whatever bit they begin.
const (
	minBits = 4
	maxBits = 32
)

// maxCells is the most cells of an array: their numbers fit 32 bits.
const maxCells = 1<<32 - 1

// padding lets eight bytes be read at the last cell.
const padding = 7

// arraySize returns the bytes of an array of at most maxCells cells.
func arraySize(cells, bits uint64) uint64 { return (cells*bits+7)/8 + padding }

// fits reports whether that many cells can be made and addressed.
func fits(cells, bits uint64) bool {
	size := arraySize(min(cells, maxCells), bits)
	return cells <= maxCells && size == uint64(int(size)) && int(size) >= 0
}

// valid reports whether a fingerprint may have that many bits.
func valid(bits uint64) bool { return minBits <= bits && bits <= maxBits }

// holds reports whether array is one of that many cells and a valid number of bits.
func holds(array []byte, cells, bits uint64) bool {
	return valid(bits) && cells <= maxCells && arraySize(cells, bits) == uint64(len(array))
}

// word returns eight bytes with cell i in the lowest bits; above it are its neighbours.
func word(array []byte, i, bits uint64) uint64 {
	at := i * bits
	return load(array, at/8) >> (at % 8)
}

func load(array []byte, at uint64) uint64 { return binary.LittleEndian.Uint64(array[at : at+8]) }

// ParseBits reads the bits of a fingerprint: a whole number from 4 to 32, or "rate=" and
// a false-positive rate, which means the fewest bits with a rate that is not above it.
func ParseBits(text string) (uint8, error) {
	bits, err := spec.ParseIntOrRate("fingerprint bits", text, minBits, maxBits,
		func(bits int) float64 { return rate(uint8(bits)) })
	return uint8(bits), err
}

// rate is the false-positive rate of fingerprints of the given bits.
func rate(bits uint8) float64 { return math.Exp2(-float64(bits)) }

// Places is where a key's cells are. The fourth counts for those with four only.
type Places [4]uint32

// set makes the fingerprints of some keys right, the last key first: it sets the key's own cell,
// one of its places, which must be zero until then. A key has three or four places.
func set(array []byte, bits uint64, arity int, zs []uint64, own []uint32, places []Places) {
	if bits == 8 {
		setBytes(array, arity, zs, own, places)
		return
	}
	values := uint64(1)<<bits - 1
	for i := len(zs) - 1; i >= 0; i-- {
		p := &places[i]
		x := word(array, uint64(p[0]), bits) ^ word(array, uint64(p[1]), bits) ^ word(array, uint64(p[2]), bits)
		if arity == 4 {
			x ^= word(array, uint64(p[3]), bits)
		}
		x = (x ^ zs[i]) & values
		at := uint64(own[i]) * bits
		bytes := array[at/8:]
		binary.LittleEndian.PutUint64(bytes, binary.LittleEndian.Uint64(bytes)|x<<(at%8))
	}
}

// setBytes is Set for cells of one byte.
func setBytes(array []byte, arity int, zs []uint64, own []uint32, places []Places) {
	for i := len(zs) - 1; i >= 0; i-- {
		p := &places[i]
		x := array[p[0]] ^ array[p[1]] ^ array[p[2]] ^ byte(zs[i])
		if arity == 4 {
			x ^= array[p[3]]
		}
		array[own[i]] = x
	}
}

// A View is an array as a probe needs it. Over has checked once that the array has all
// its cells, so reading one needs no check of bounds. With three or four cells in each
// probe, such checks cost packed and wide fingerprints a third of their time.
type View struct {
	cells unsafe.Pointer // keeps the array alive; nil in the filter of no keys
	bits  uint64         // of a fingerprint; 0 in the filter of no keys
	Salt  uint64         // what the seed changes in a hash
}

// Over makes v the view of an array of cells cells, or returns false if it is none. Only
// cells below that number may be read.
func (v *View) Over(array []byte, cells, bits uint64, seed uint32) bool {
	v.cells, v.bits, v.Salt = nil, 0, uint64(seed)*hash64.Golden
	if cells == 0 {
		return len(array) == 0 && valid(bits)
	}
	if !holds(array, cells, bits) {
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

// Match3 reports whether the cells a, b and c hold the fingerprint of z. In the filter of no keys none do.
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
