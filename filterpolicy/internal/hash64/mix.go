// Package hash64 prepares the 64-bit hashes that filters are given: it mixes them, collects those
// of a file and sorts them.
//
// Filters promise their false-positive rate for any distinct inputs, not only for good hashes: a
// caller may pass counters, addresses or timestamps. Every family therefore mixes what it is given.
package hash64

import "math/bits"

// Golden is 2^64 divided by the golden ratio, rounded to odd. Steps of Golden visit
// the 64-bit circle as evenly as any constant step can.
const Golden = 0x9e3779b97f4a7c15

// multiplier is odd, so that multiplying by it loses nothing; its bits have no
// visible pattern, so that the high half of the product depends on the whole input.
const multiplier = 0xd6e8feb86659fd93

// Mix returns a permutation of h: distinct inputs stay distinct, and any part of the result may be
// used as if it were independent of the rest. Two rounds of shift and multiply, the form that D.
// Stafford and others searched for good constants of ("Better Bit Mixing", 2011).
func Mix(h uint64) uint64 {
	h ^= h >> 32
	h *= multiplier
	h ^= h >> 29
	h *= multiplier
	return h ^ h>>32
}

// Round is a permutation too, at half the cost of Mix. Its high bits are well spread for counters of any kind, but its
// low half may follow from its high half: an input of two equal halves gives an output of two equal halves. It is for
// callers that take the high bits, and all else through a further product.
func Round(h uint64) uint64 {
	h ^= h >> 32
	h *= multiplier
	return h ^ h>>32
}

// Reduce maps a uniform h to [0, n) by its high bits, without a division: the upper word of h*n
// (Lemire, "Fast random integer generation in an interval", 2019). Reduce(h, 0) is 0.
func Reduce(h, n uint64) uint64 {
	hi, _ := bits.Mul64(h, n)
	return hi
}

// Seeded is Mix, with another permutation for each seed.
func Seeded(h uint64, seed uint32) uint64 { return Mix(h ^ uint64(seed)*Golden) }

// Point returns the i-th point of a key on the 64-bit circle; Reduce scales it to a table. z is Mix of the key's hash.
//
// The points are as good as independent. A walk in even steps, double hashing, costs a
// multiplication less for each. But two keys that share a point and the step share all points.
// There are n/m² such keys in a table of m cells, which shows in small sets and at very low rates.
func Point(z uint64, i int) uint64 { return Round(z + uint64(i)*Golden) }
