package ribbon

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// The cells of a ribbon filter are its layers, the largest first, and then for each layer its number of blocks m, at
// least two, and of narrow ones L, each a u32. The footer's units are the blocks of all layers; its parameters are the
// columns b and the number of layers. A block is 64 slots. A layer is
//
//	words       u64 ...   for each block b words, or b+1 from block L on
//	thresholds  2 bits    for each 128 of its 64*(m-1) starts, padded to a multiple
//	                      of eight bytes; the last layer has none
//
// Bit j of word c of block i is the slot 64*i+j of column c. Threshold i is in bits 2*(i%4) and
// up of byte i/4. A hash h has an equation per column of a layer:
//
//	z = mix(h ^ seed * 0x9e3779b97f4a7c15);  z = mix(z + 0x9e3779b97f4a7c15) for each further layer
//	start = (z * 64*(m-1)) >> 64, the product taken at 128 bits
//	a = 1 | (low ^ high half of the 128 bits of z * 0xd6e8feb86659fd93)
//	v = (z ^ z>>29) * 0xc2b2ae3d27d4eb4f >> 32
//	mix(h): h ^= h>>32; h *= M; h ^= h>>29; h *= M; h ^= h>>32;  M = 0xd6e8feb86659fd93
//
// The threshold of start/128 may be 0 to 3; if start%128 is below 0, 20, 48 or 128 in turn, the hash
// belongs to the next layer. Otherwise it may be a key if, for each column c of block start/64, the
// sum modulo 2 of the slots start+j for which bit j of a is set equals bit c of v.
const (
	blockLen   = 64  // slots: the bits of a word, and the width of an equation
	bucketLen  = 128 // starts that share a threshold
	wordLen    = 8
	entryLen   = 8
	minBlocks  = 2
	maxColumns = 32

	rowMultiplier    = 0xd6e8feb86659fd93
	resultMultiplier = 0xc2b2ae3d27d4eb4f
)

// limits holds, a byte per threshold, how many starts of a bucket are bumped. Of the figures that
// were tried at a width of 64, these and the overload take the least space.
const limits = 0 | 20<<8 | 48<<16 | bucketLen<<24

func limitOf(threshold uint64) uint64 { return limits >> (8 * threshold) & 0xff }

// A row is the left side of a hash's equations, bit 0 at its start, and their right sides, bit c for column c.
func row(z uint64) (coefficients, results uint64) {
	high, low := bits.Mul64(z, rowMultiplier)
	return 1 | (low ^ high), (z ^ z>>29) * resultMultiplier >> 32
}

// deeper returns a hash's value in the layer after the one where it is z.
func deeper(z uint64) uint64 { return hash64.Mix(z + hash64.Golden) }

// A shape is the size of a layer: its blocks, of which the first ones are narrow.
type shape struct {
	columns        uint64 // of the narrow blocks; the others have one more
	blocks, narrow uint64
}

// shapeOf returns the shape that a directory's entry tells, ok if there can be such a layer.
func shapeOf(columns, entry uint64) (s shape, ok bool) {
	s = shape{columns, entry & math.MaxUint32, entry >> 32}
	wide := columns != maxColumns || s.narrow == s.blocks
	return s, wide && s.blocks >= minBlocks && s.narrow <= s.blocks
}

func (s shape) entry() uint64 { return s.blocks | s.narrow<<32 }

// starts returns the number of slots at which an equation may start: those from
// which it does not reach beyond the last block.
func (s shape) starts() uint64 { return blockLen * (s.blocks - 1) }

func (s shape) size(last bool) (words, thresholds uint64) {
	words = wordLen * (s.blocks*s.columns + s.blocks - s.narrow)
	if !last {
		buckets := (s.starts() + bucketLen - 1) / bucketLen
		thresholds = (buckets + 4*wordLen - 1) / (4 * wordLen) * wordLen
	}
	return words, thresholds
}

// A layer is one ribbon and what locates a key in it.
type layer struct {
	shape
	words      []byte
	thresholds []byte // none in the last layer
}

// cut takes a layer off the front of cells, or says false.
func (l *layer) cut(s shape, cells []byte, last bool) (rest []byte, ok bool) {
	words, thresholds := s.size(last)
	if words+thresholds > uint64(len(cells)) {
		return nil, false
	}
	l.shape, l.words, l.thresholds = s, cells[:words], cells[words:words+thresholds]
	return cells[words+thresholds:], true
}

// bumps reports whether keys with this start belong to the next layer.
func (l *layer) bumps(start uint64) bool {
	if len(l.thresholds) == 0 {
		return false
	}
	bucket := start / bucketLen
	threshold := uint64(l.thresholds[bucket/4]>>(bucket%4*2)) & 3
	return start%bucketLen < limitOf(threshold)
}

// locate returns where a block's words begin and how many they are.
func (l *layer) locate(block uint64) (at, columns uint64) {
	at, columns = block*l.columns, l.columns
	if block >= l.narrow {
		at += block - l.narrow
		columns++
	}
	return at * wordLen, columns
}

// headLen columns are tested before the first branch on a result. Of a hundred absent keys six get past them.
const headLen = 4

// probe reports whether z may be a key of the layer.
func (l *layer) probe(z, start uint64) bool {
	at, columns := l.locate(start / blockLen)
	first := l.words[at : at+columns*wordLen]
	second := l.words[at+columns*wordLen : at+2*columns*wordLen] // as many: no later block has fewer
	row, results := row(z)
	left, right := row<<(start%blockLen), row>>1>>(blockLen-1-start%blockLen)
	if columns >= headLen {
		a, b := (*[headLen * wordLen]byte)(first), (*[headLen * wordLen]byte)(second)
		sums := parity(a[0:], b[0:], left, right) | parity(a[8:], b[8:], left, right)<<1 |
			parity(a[16:], b[16:], left, right)<<2 | parity(a[24:], b[24:], left, right)<<3
		if (sums^results)&(1<<headLen-1) != 0 {
			return false
		}
		results >>= headLen
		first, second = first[headLen*wordLen:], second[headLen*wordLen:]
	}
	wrong := uint64(0)
	for len(first) >= wordLen && len(second) >= wordLen {
		wrong |= parity(first, second, left, right) ^ results
		results >>= 1
		first, second = first[wordLen:], second[wordLen:]
	}
	return wrong&1 == 0
}

// parity returns the sum modulo 2 of the slots of two words that are chosen by two masks.
func parity(first, second []byte, left, right uint64) uint64 {
	x := binary.LittleEndian.Uint64(first)&left ^ binary.LittleEndian.Uint64(second)&right
	return uint64(bits.OnesCount64(x)) & 1
}
