package sstable

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
)

// A block does not say how long it is, and after damage it is not known either where the next one begins. To try every
// beginning with every end would take the square of the file's size. It is not necessary, because a CRC is linear. All
// sums and products below are those of polynomials over GF(2), modulo the CRC's polynomial. Let
//
//	R(k) be the CRC register after the first k bytes of the file, starting from zero,
//	h(p) the register after the place that a block at p is bound to.
//
// A block that begins at p, and of which the byte before e is the last that its checksum c covers, checks out if
//
//	R(e) + (h(p) + R(p))·x^8(e-p) = ^c
//
// Divided by x^8e and sorted by what each term depends on:
//
//	(h(p) + R(p))·x^-8p = (R(e) + ^c)·x^-8e
//
// One pass over the file computes the right side for every e; the ends of a block at p are those at which it equals the
// left side. That is exactly the comparison of checksums, for all pairs.

// A blockEnd is a place at which a trailer may stand.
type blockEnd struct {
	sum     uint32 // the right side
	trailer int    // offset of the compression, which is at e-1
}

func (a blockEnd) compare(b blockEnd) int {
	if a.sum != b.sum {
		return cmp.Compare(a.sum, b.sum)
	}
	return cmp.Compare(a.trailer, b.trailer)
}

// A blockEnds finds the ends of blocks in a file with a given id. Calls must have beginnings in ascending order.
type blockEnds struct {
	data []byte
	id   uint64
	ends []blockEnd // ordered by sum
	prefixSum
}

func newBlockEnds(data []byte, id uint64) *blockEnds {
	b := &blockEnds{data: data, id: id}
	b.rewind()
	for at := range max(len(data)-trailerSize+1, 0) {
		b.add(data[at])
		if c := Compression(data[at]); c == NoCompression || c == Snappy || c == Zstd {
			stored := binary.LittleEndian.Uint32(data[at+1:])
			b.ends = append(b.ends, blockEnd{b.scaled(^stored), at})
		}
	}
	slices.SortFunc(b.ends, blockEnd.compare)
	b.rewind()
	return b
}

// of returns, in ascending order, where the trailer of a block that begins at pos may
// stand: at least one byte after pos, and less than window.
func (b *blockEnds) of(pos, window int) []blockEnd {
	for b.at < pos {
		b.add(b.data[b.at])
	}
	sum := b.scaled(^base.Checksum(b.id, uint64(pos), nil))
	from, _ := slices.BinarySearchFunc(b.ends, blockEnd{sum, pos + 1}, blockEnd.compare)
	n, _ := slices.BinarySearchFunc(b.ends[from:], blockEnd{sum, pos + window}, blockEnd.compare)
	return b.ends[from : from+n]
}

// A prefixSum is R(at) and x^(-8·at).
type prefixSum struct {
	at       int
	register uint32
	scale    uint32
}

// rewind goes back to the beginning of the file.
func (p *prefixSum) rewind() { *p = prefixSum{scale: 1 << 31} }

// add goes on by one byte of the file.
func (p *prefixSum) add(b byte) {
	p.at++
	p.register = castagnoli[byte(p.register)^b] ^ p.register>>8
	p.scale = p.scale<<8 ^ unshift[p.scale>>24]
}

// scaled returns (R(at) + r)·x^(-8·at).
func (p *prefixSum) scaled(r uint32) uint32 { return product(p.register^r, p.scale) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// unshift divides by x^8: it takes back what castagnoli does to a register when a zero byte comes.
var unshift = func() (t [256]uint32) {
	for i, v := range castagnoli {
		t[v>>24] = v<<8 ^ uint32(i)
	}
	return t
}()

// product multiplies two polynomials. Bit 31 is the coefficient of x^0, as in the register.
func product(a, b uint32) (p uint32) {
	for ; a != 0; a <<= 1 {
		p ^= b & -(a >> 31)
		b = b>>1 ^ crc32.Castagnoli&-(b&1)
	}
	return p
}
