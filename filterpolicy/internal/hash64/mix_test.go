package hash64

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each output bit should flip with probability one half when any input bit does.
func TestMixAvalanches(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const rounds = 4000
	for in := range 64 {
		var flips [64]int
		for range rounds {
			h := random.Uint64()
			d := Mix(h) ^ Mix(h^1<<in)
			for ; d != 0; d &= d - 1 {
				flips[bits.TrailingZeros64(d)]++
			}
		}
		for out, n := range flips {
			require.InDelta(t, rounds/2, n, rounds/8, "input bit %d, output bit %d", in, out)
		}
	}
}

func TestMixAndRoundArePermutations(t *testing.T) {
	for name, f := range map[string]func(uint64) uint64{"Mix": Mix, "Round": Round} {
		seen := map[uint64]uint64{}
		for i := range uint64(1 << 16) {
			for _, h := range []uint64{i, i << 24, i << 48} {
				if other, ok := seen[f(h)]; ok {
					require.Equal(t, other, h, name)
				}
				seen[f(h)] = h
			}
		}
	}
}

func TestReduceCoversItsRangeEvenly(t *testing.T) {
	require.Zero(t, Reduce(^uint64(0), 0))
	require.Zero(t, Reduce(^uint64(0), 1))
	for _, n := range []uint64{1, 2, 3, 1000, 1<<32 + 1, 1<<63 + 5, ^uint64(0)} {
		require.Zero(t, Reduce(0, n))
		require.Equal(t, n-1, Reduce(^uint64(0), n))
	}
	var counts [7]int
	for i := range uint64(7000) {
		counts[Reduce(Mix(i), 7)]++
	}
	for _, n := range counts {
		require.InDelta(t, 1000, n, 150)
	}
}
