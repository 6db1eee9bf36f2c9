package gcs

import (
	"encoding/binary"
	"math/bits"
)

// A code is the Golomb code with a divisor: a number is written as one zero bit for each time that it contains the
// divisor, a one, and what is left in truncated binary. With k the bits that hold every remainder, the 2^k - divisor
// smallest remainders take k-1 bits, lowest first; others take k, of which the last is the highest half.
type code struct {
	divisor uint64
	short   uint64 // remainders below take k-1 bits
	half    uint64 // 2^(k-1)
	low     uint   // k-1
}

func codeOf(divisor uint64) code {
	k := uint(max(1, bits.Len64(divisor-1)))
	return code{divisor: divisor, short: 1<<k - divisor, half: 1 << (k - 1), low: k - 1}
}

// A writer appends bits to bytes, from the lowest bit of each up.
type writer struct {
	bytes []byte
	word  uint64 // of bits that are not yet a byte
	n     uint   // their number, below 8
}

// write appends the n lowest bits of x, at most 56.
func (w *writer) write(x uint64, n uint) {
	w.word |= x & (1<<n - 1) << w.n
	w.n += n
	for ; w.n >= 8; w.n -= 8 {
		w.bytes = append(w.bytes, byte(w.word))
		w.word >>= 8
	}
}

func (w *writer) len() uint64 { return uint64(len(w.bytes))*8 + uint64(w.n) }

// flush fills the last byte with zeros.
func (w *writer) flush() {
	if w.n != 0 {
		w.bytes = append(w.bytes, byte(w.word))
		w.word, w.n = 0, 0
	}
}

func (w *writer) put(c code, x uint64) {
	const step = 32
	zeros := x / c.divisor
	for ; zeros >= step; zeros -= step {
		w.write(0, step)
	}
	w.write(1<<zeros, uint(zeros)+1)
	switch rest := x % c.divisor; {
	case rest < c.short:
		w.write(rest, c.low)
	case rest < c.half:
		w.write(rest, c.low+1)
	default:
		rest -= c.half - c.short
		w.write(rest, c.low)
		w.write(1, 1)
	}
}

// word returns the bits beginning at pos: at least 57 are valid, the others mean nothing. bytes
// must reach eight beyond the one of pos.
func word(bytes []byte, pos uint64) uint64 {
	return binary.LittleEndian.Uint64(bytes[pos/8:]) >> (pos % 8)
}

// A reader decodes numbers from pos up to end.
type reader struct {
	bytes    []byte // padding included
	pos, end uint64
}

// next decodes a number. For bits that are no code the result has no meaning; pos moves on in any case.
func (r *reader) next(c code) uint64 {
	const step = 24 // zeros, a one and a remainder of 32 bits are then in one word
	x, zeros := word(r.bytes, r.pos), uint64(0)
	for x&(1<<step-1) == 0 {
		zeros += step
		if r.pos += step; r.pos >= r.end {
			return 0
		}
		x = word(r.bytes, r.pos)
	}
	first := uint64(bits.TrailingZeros64(x)) // below step
	x >>= first + 1
	rest := x & (c.half - 1)
	long := (c.short - 1 - rest) >> 63 // 1 if rest is not below short
	rest += x >> c.low & long * (c.half - c.short)
	r.pos += first + 1 + uint64(c.low) + long
	return (zeros+first)*c.divisor + rest
}

// find reports whether a value is among the numbers, each of which counts from the value
// before it. It is next in a loop, with as many codes taken from a word as are whole in it.
func (r *reader) find(c code, value uint64) bool {
	sum, pos := uint64(0), r.pos // sum: the least value that can follow
	for pos < r.end {
		x, begin := word(r.bytes, pos), pos
		last := pos + 63 - pos%8 - uint64(c.low) - 1 // the last place for a one whose remainder is whole
		for pos < r.end {
			zeros := uint64(bits.TrailingZeros64(x))
			if pos+zeros > last {
				break
			}
			x = x >> (zeros & 63) >> 1
			rest := x & (c.half - 1)
			long := (c.short - 1 - rest) >> 63
			rest += x >> (c.low & 63) & long * (c.half - c.short)
			x = x >> (c.low & 63) >> (long & 63)
			pos += zeros + 1 + uint64(c.low) + long
			sum += zeros*c.divisor + rest + 1
			if sum > value {
				return sum == value+1
			}
		}
		if pos == begin { // a code that no word has whole
			r.pos = pos
			sum += r.next(c) + 1
			if pos = r.pos; sum > value {
				return sum == value+1
			}
		}
	}
	return false
}
