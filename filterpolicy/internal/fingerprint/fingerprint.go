// Package fingerprint is the array of short fingerprints that xor and fuse filters
// are made of.
//
// A key has some places in the array, and the exclusive-or of the cells there is
// its fingerprint, the low F bits of the mixed hash. The array is packed: F bits per cell without gaps, from the
// lowest bit of the first byte, and then seven zero bytes, so that any cell can be
// read as a part of eight bytes.
package fingerprint

import "encoding/binary"

// Bounds of the bits of a fingerprint. Below four bits a filter is hardly worth its
// probe; 32 bits fit eight bytes at whatever bit they begin.
const (
	MinBits = 4
	MaxBits = 32
)

// MaxCells is the most cells of an array: their numbers fit 32 bits.
const MaxCells = 1<<32 - 1

// padding lets eight bytes be read at the last cell.
const padding = 7

// Size returns the bytes of an array of at most MaxCells cells.
func Size(cells, bits uint64) uint64 { return (cells*bits+7)/8 + padding }

// Fits reports whether so many cells can be made and addressed.
func Fits(cells, bits uint64) bool {
	size := Size(min(cells, MaxCells), bits)
	return cells <= MaxCells && size == uint64(int(size)) && int(size) >= 0
}

// Valid reports whether a fingerprint may have so many bits.
func Valid(bits uint64) bool { return MinBits <= bits && bits <= MaxBits }

// Holds reports whether array is one of so many cells and a valid number of bits.
func Holds(array []byte, cells, bits uint64) bool {
	return Valid(bits) && cells <= MaxCells && Size(cells, bits) == uint64(len(array))
}

// word returns eight bytes with cell i in the lowest bits; above it are its
// neighbours.
func word(array []byte, i, bits uint64) uint64 {
	at := i * bits
	return load(array, at/8) >> (at % 8)
}

func load(array []byte, at uint64) uint64 { return binary.LittleEndian.Uint64(array[at : at+8]) }
