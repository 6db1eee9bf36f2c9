package keys

import "math/bits"

// A Permutation is a keyed bijection of [0, n) that takes constant memory. It
// is a four-round Feistel network over the smallest even number of bits that
// holds n-1, walked again while the result falls outside (cycle walking: J.
// Black, P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). The
// domain is less than four times n, so a step takes under four walks on average.
//
// It shuffles; it does not hide anything from an adversary.
type Permutation struct {
	n    uint64
	half uint // bits of each half
	mask uint64
	keys [4]uint64
}

// Seeds of the orders of a source are its own seed XOR one of these, so that
// loading and asking walk unrelated permutations.
const (
	loadOrder = 0x70726573
	askOrder  = 0x61627365
)

// NewPermutation returns the permutation of [0, n) that belongs to seed.
func NewPermutation(n int, seed uint64) Permutation {
	p := Permutation{n: uint64(n), half: 1}
	if n > 1 {
		p.half = uint(bits.Len64(p.n-1)+1) / 2
	}
	p.mask = 1<<p.half - 1
	for i := range p.keys {
		p.keys[i] = Mix(seed + uint64(i) + 1)
	}
	return p
}

// Len returns n.
func (p Permutation) Len() int { return int(p.n) }

// At returns the image of i, 0 <= i < n.
func (p Permutation) At(i int) int {
	x := uint64(i)
	for {
		left, right := x>>p.half, x&p.mask
		for _, k := range p.keys {
			left, right = right, left^Mix(right^k)&p.mask
		}
		x = left<<p.half | right
		if x < p.n {
			return int(x)
		}
	}
}

// Mix is the output function of SplitMix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014): a bijection of 64-bit words
// whose output bits all depend on all input bits.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
