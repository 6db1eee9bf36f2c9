package conformance

import (
	"math"
	"math/bits"
)

// An Input is a family of hashes: distinct for distinct numbers, so that the keys
// of a test are At(0..n-1) and any later number is an absent key.
type Input struct {
	Name string
	At   func(i uint64) uint64
}

// Good returns well-mixed hashes. Different salts give disjoint ones.
func Good(salt uint64) Input {
	return Input{"good", func(i uint64) uint64 { return murmur(i ^ salt<<40) }}
}

// murmur is a permutation (the finalizer of MurmurHash3).
func murmur(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Unmixed are inputs that no hash function has touched.
var Unmixed = []Input{
	{"counter", func(i uint64) uint64 { return i }},
	{"counter of 3", func(i uint64) uint64 { return 3 * i }},
	{"counter of 1000", func(i uint64) uint64 { return 1000 * i }},
	{"bits 8 up", func(i uint64) uint64 { return i << 8 }},
	{"bits 16 up", func(i uint64) uint64 { return i << 16 }},
	{"bits 32 up", func(i uint64) uint64 { return i << 32 }},
	{"bits 40 up", func(i uint64) uint64 { return i << 40 }},
	{"high half set", func(i uint64) uint64 { return i | 0xffffffff<<32 }},
	{"equal halves", func(i uint64) uint64 { return i | i<<32 }},
	{"bits reversed", bits.Reverse64},
	{"bytes reversed", bits.ReverseBytes64},
	{"golden counter", func(i uint64) uint64 { return i * 0x9e3779b97f4a7c15 }},
	{"inverse counter", func(i uint64) uint64 { return i * undo }},
	{"floating point", func(i uint64) uint64 { return math.Float64bits(float64(i)) }},
	{"decimal digits", decimal},
}

func decimal(i uint64) (text uint64) {
	for range 8 {
		text = text<<8 | '0' + i%10
		i /= 10
	}
	return text
}

// undo is the inverse modulo 2^64 of the multiplier of package hash64, by Newton's
// iteration.
var undo = func() uint64 {
	const c = 0xd6e8feb86659fd93
	x := uint64(c)
	for range 6 {
		x *= 2 - c*x
	}
	return x
}()

// unmix and unround are the inverses of hash64.Mix and hash64.Round: with them an
// adversary chooses where hashes go.
func unmix(z uint64) uint64 {
	z = (z ^ z>>32) * undo
	z = (z ^ z>>29 ^ z>>58) * undo
	return z ^ z>>32
}

func unround(z uint64) uint64 {
	z = (z ^ z>>32) * undo
	return z ^ z>>32
}

// Hostile are inputs made against the families: their mixed values agree in the
// bits that choose a place, or in those that tell keys of one place apart.
var Hostile = []Input{
	{"one place", func(i uint64) uint64 { return unmix(0x5555<<48 | i) }},
	{"two places", func(i uint64) uint64 { return unmix(i<<63 | i>>1) }},
	{"one low half", func(i uint64) uint64 { return unmix(i<<32 | 0x1234567) }},
	{"zero low half", func(i uint64) uint64 { return unmix(i << 32) }},
	{"neighbours", func(i uint64) uint64 { return unmix(^i) }},
	{"one line", func(i uint64) uint64 { return unround(0x5555<<48 | i) }},
	{"one pattern", func(i uint64) uint64 { return unround(i << 32) }},
	{"neighbouring lines", func(i uint64) uint64 { return unround(^i) }},
}
