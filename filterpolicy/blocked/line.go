package blocked

import (
	"encoding/binary"
	"unsafe"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// The cells of a blocked filter are lines of 64 bytes; the footer's units are their number, its first parameter is the
// number of probes k. Bit p of a line is bit p%8 of its byte p/8. A hash h has one line and k bits in it:
//
//	z = h ^ h>>32;  z *= 0xd6e8feb86659fd93;  z ^= z>>32
//	line = (z * units) >> 64, the product taken at 128 bits
//	u = z * golden                      seven bits: i = 0..6
//	v = (z ^ z>>29) * multiplier        seven more: i = 7..13
//	p(i) = (u >> (55-9*i)) % 512; from i = 7 on (v >> (55-9*(i-7))) % 512
//
// golden is 0x9e3779b97f4a7c15 and multiplier is 0xc2b2ae3d27d4eb4f; arithmetic wraps at 64 bits.
const (
	lineBits = 8 * LineLen
	perWord  = 7 // positions of 9 bits in 64

	secondMultiplier = 0xc2b2ae3d27d4eb4f
)

// firstWord holds the first seven positions, the earliest on top. The line comes from the high bits of z; a product
// mixes in the low ones, so that keys of one line still differ in all their positions.
func firstWord(z uint64) uint64 { return z * hash64.Golden }

// secondWord holds the next seven.
func secondWord(z uint64) uint64 { return (z ^ z>>29) * secondMultiplier }

// A line is as aligned as the bytes that it is a part of, which is not at all.
type line [LineLen]byte

// linesOf returns the lines of cells, without a copy.
func linesOf(cells []byte) []line {
	// Arrays of bytes have no alignment, so the conversion is valid at any address.
	return unsafe.Slice((*line)(unsafe.Pointer(unsafe.SliceData(cells))), len(cells)/LineLen)
}

// missing returns zero if the bit of the line is set whose position stands in u at the given shift. Setting a bit and
// looking for a change costs less than shifting it to a place where bits of several words could be combined.
func (l *line) missing(u uint64, shift uint) uint64 {
	at := u >> (shift + 3) & 56 // the position's upper three bits choose eight bytes
	word := binary.LittleEndian.Uint64(l[at : at+8])
	return (word | 1<<(u>>shift&63)) ^ word
}

// set sets n bits of the line, at the topmost positions of u.
func (l *line) set(u uint64, n int) {
	for range n {
		l[u>>58] |= 1 << (u >> 55 & 7)
		u <<= 9
	}
}
