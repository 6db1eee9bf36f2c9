package cutkeys

import "math"

// A filter's cells, of g groups:
//
//	marks     g × u64    the first 64 bits of each group's first code, the first bit the highest
//	groups    g × u64    bits  0 to 31  where the group's streams begin, in bytes
//	                          32 to 47  base of its lengths
//	                          48 to 51  bits of a Rice remainder
//	                          52 to 63  bytes of its lengths
//	streams   bytes      group by group, lengths and then tails
//	padding   u64        0
//	alphabet  bytes      see there
//	prefix    bytes      what all keys begin with
//	sizes     u32, u32   bytes of the alphabet and of the prefix
//
// The footer's units are the groups, its first parameter is m. Groups have 64 keys, the last one the rest.
//
// The code of a key is the codes of its bytes behind the prefix, and zeros without end. Let
// l(i) be the number of bits that code i has in common with code i-1, and 0 for the first and behind the
// last. Key i is cut to max(l(i), l(i+1)) + 1 + m bits.
//
// Lengths are l(i) for the keys of a group and the one behind them. A length less the base, x, is numbered by z = 2x
// or, if negative, -2x-1. It is written from the lowest bit of a byte up, as z >> k zeros, a one, and the k lowest bits
// of z. If there would be 16 zeros or more, 16 zeros and z in 32 bits. Zeros fill the last byte.
//
// Tails are written from the highest bit of a byte down. That of the group's first key is the bits after the 64 of the
// mark. Those of others are the bits after bit l(i), which is a one: max(0, l(i+1) - l(i)) + m bits.
const (
	groupLen    = 64
	wordLen     = 8
	wordBits    = 64
	sizesLen    = 8
	escapeZeros = 16 // that announce a number of escapeBits
	escapeBits  = 32
	maxBase     = 1<<16 - 1
	maxRice     = 12

	// maxStreams is the most bytes of all streams: their places in bits are ints.
	maxStreams = min(1<<32-1, math.MaxInt/8-wordLen)
)

// A group is what the layout says of one.
type group uint64

func newGroup(begin, base, rice, lengths uint64) group {
	return group(begin | base<<32 | rice<<48 | lengths<<52)
}

func (g group) begin() uint64   { return uint64(g) & (1<<32 - 1) }
func (g group) base() int       { return int(g >> 32 & maxBase) }
func (g group) rice() uint      { return uint(g >> 48 & 15) }
func (g group) lengths() uint64 { return uint64(g >> 52) }
