package fuse

import "math/bits"

// The sizes are tuned by simulation (simulation.md) so that some nine of ten
// attempts at building succeed at any number of keys n. They need
//
//	n * 1.085 + 2.6 * n^0.7 cells with three places per key,
//	n * 1.024 + 2.6 * n^0.7 cells with four,
//
// the first part being near the limit of large filters, the second the price of
// small ones, rounded up to whole segments, which have about n^0.6 cells.

// smallLogs are the segments' lengths for fewer than 512 keys, by the number of
// places less three and the logarithm of the number of keys.
var smallLogs = [2][9]uint64{
	{0, 1, 2, 3, 3, 4, 5, 5, 5},
	{0, 1, 1, 2, 3, 3, 4, 5, 5},
}

// extras holds 2.6 * n^0.7 for the powers of two. Multiplications alone give the
// same numbers on every machine.
var extras = func() (all [34]uint64) {
	const step = 1.6245047927124712 // 2^0.7
	x := 2.6
	for i := range all {
		all[i] = uint64(x)
		x *= step
	}
	return all
}()

// extra returns about 2.6 * n^0.7, on lines between the powers of two.
func extra(n uint64) uint64 {
	k := log2(n)
	return extras[k] + (extras[k+1]-extras[k])*(n-1<<k)>>k
}

func log2(n uint64) int { return bits.Len64(n) - 1 }

// segmentLog returns the logarithm of the length of segments for n keys.
func segmentLog(arity int, n uint64) uint64 {
	k := log2(n)
	if small := smallLogs[arity-3]; k < len(small) {
		return small[k]
	}
	return min(maxLog, (6*uint64(k)+7)/10)
}

// layoutFor returns the layout for so many distinct keys, at most
// fingerprint.MaxCells. Each growth adds a sixteenth and a segment.
func layoutFor(arity int, keys uint64, growth int) layout {
	if keys == 0 {
		return newLayout(arity, 0, uint64(arity))
	}
	perThousand := uint64(1085)
	if arity == 4 {
		perThousand = 1024
	}
	log := segmentLog(arity, keys)
	cells := keys*perThousand/1000 + extra(keys)
	segments := (cells + 1<<log - 1) >> log
	segments = max(segments, uint64(arity)) + uint64(growth)*(segments/16+1)
	return newLayout(arity, log, segments)
}
