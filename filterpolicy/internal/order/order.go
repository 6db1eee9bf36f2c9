// Package order puts the hashes of a file in order, for the families that store
// them sorted.
package order

import (
	"math/bits"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy/internal/collect"
	"github.com/siftkv/siftkv/filterpolicy/internal/mix"
)

// perShelf is how many hashes share a shelf on average: few enough that a shelf is
// sorted by insertion.
const perShelf = 8

// maxShelves bounds the memory for counting.
const maxShelves = 1 << 22

// Mixed returns the value under which a hash is ordered; each seed gives another
// permutation of all values.
func Mixed(h uint64, seed uint32) uint64 { return mix.Mix(h ^ uint64(seed)*mix.Golden) }

// Distinct returns the mixed hashes in ascending order, each once. They take eight
// bytes per hash and one more while they are sorted. Well-mixed values are dealt to
// shelves by their high bits and sorted there in linear time; values that crowd on
// few shelves cost n log n.
func Distinct(hashes *collect.Hashes, seed uint32) []uint64 {
	n := hashes.Len()
	shelves := 1 << bits.Len(uint(min(n/perShelf, maxShelves-1)))
	shift := 64 - bits.TrailingZeros(uint(shelves))
	ends := make([]int, shelves)
	for chunk := range hashes.Chunks() {
		for _, h := range chunk {
			ends[Mixed(h, seed)>>shift]++
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
			z := Mixed(h, seed)
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
