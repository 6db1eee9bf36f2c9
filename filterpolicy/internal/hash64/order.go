package hash64

import (
	"iter"
	"math/bits"
	"slices"
)

// perShelf is how many hashes share a shelf on average: few enough that a shelf is sorted by insertion.
const perShelf = 8

// maxShelves bounds the memory for counting.
const maxShelves = 1 << 22

// Distinct returns the mixed hashes in ascending order, each once. They take eight bytes per hash
// and one more while they are sorted. Well-mixed values are dealt to shelves by their high bits and
// sorted there in linear time; values that crowd on few shelves cost n log n.
func Distinct(hashes *List, seed uint32) []uint64 {
	n := hashes.Len()
	shelves := 1 << bits.Len(uint(min(n/perShelf, maxShelves-1)))
	shift := 64 - bits.TrailingZeros(uint(shelves))
	ends := make([]int, shelves)
	for chunk := range hashes.Chunks() {
		for _, h := range chunk {
			ends[Seeded(h, seed)>>shift]++
		}
	}
	sum := 0
	for i, count := range ends {
		ends[i] = sum
		sum += count
	}
	sorted := make([]uint64, n)
	for chunk := range hashes.Chunks() {
		for _, h := range chunk {
			z := Seeded(h, seed)
			sorted[ends[z>>shift]] = z
			ends[z>>shift]++
		}
	}
	begin := 0
	for _, end := range ends {
		slices.Sort(sorted[begin:end])
		begin = end
	}
	return slices.Compact(sorted)
}

// Union yields the values of two ascending sequences in ascending order; those of both come twice.
// Each function returns the next value of its sequence, false after the last.
func Union(a, b func() (value uint64, ok bool)) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		x, left := a()
		y, right := b()
		for left || right {
			if left && (!right || x <= y) {
				if !yield(x) {
					return
				}
				x, left = a()
				continue
			}
			if !yield(y) {
				return
			}
			y, right = b()
		}
	}
}
