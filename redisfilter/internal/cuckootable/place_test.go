package cuckootable

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomShape returns a shape of any bits and any number of buckets.
func randomShape(random *rand.Rand) Shape {
	s := Shape{Bits: minBits + random.Uint32N(maxBits-minBits+1), Shards: 1 + random.Uint32N(1<<random.IntN(20))}
	s.Buckets = 2 * (1 + random.Uint32N(s.mostBuckets(1<<(7+random.IntN(10)))/2))
	return s
}

func TestPlaceIsInBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		s := randomShape(random)
		require.NoError(t, s.Check())
		p := s.Place(random.Uint64())
		require.Less(t, p.Shard, s.Shards)
		require.Less(t, p.I, s.Buckets)
		require.Less(t, p.J, s.Buckets)
		require.NotEqual(t, p.I, p.J)
		require.Equal(t, p.I, s.other(p.Fingerprint, p.J), "either bucket leads to the other")
		require.NotZero(t, p.Fingerprint)
		require.LessOrEqual(t, uint64(p.Fingerprint), s.values())
	}
}

// Where keys lie is part of the format: other processes look there.
func TestPlaceNeverChanges(t *testing.T) {
	s := Shape{Bits: 13, Buckets: 1254, Shards: 2288}
	require.Equal(t, []Place{{0, 1, 0, 775}, {1765, 2415, 672, 21}, {926, 5279, 1004, 1005}},
		[]Place{s.Place(0), s.Place(1), s.Place(1 << 63)})
	s = Shape{Bits: 32, Buckets: 510, Shards: 3}
	require.Equal(t, Place{0, 780774380, 34, 451}, s.Place(12345678901234567890))
}

// Bits of a hash that choose the shard tell nothing of the bucket and the fingerprint.
func TestPlacesAreSpread(t *testing.T) {
	s := Shape{Bits: 8, Buckets: 16, Shards: 16}
	const keys = 1 << 16
	var shards, first, second, fingerprints, joint [256]int
	for h := range uint64(keys) {
		p := s.Place(h)
		shards[p.Shard]++
		first[p.I]++
		second[p.J]++
		fingerprints[p.Fingerprint]++
		joint[p.Shard<<4|p.I]++
	}
	even := func(counts []int) {
		want := float64(keys) / float64(len(counts))
		chi2 := 0.0
		for _, n := range counts {
			chi2 += (float64(n) - want) * (float64(n) - want) / want
		}
		freedom := float64(len(counts) - 1)
		require.Less(t, chi2, freedom+30+5*freedom/10)
	}
	even(shards[:16])
	even(first[:16])
	even(fingerprints[1:])
	even(joint[:])
	for _, n := range second[:16] {
		require.InEpsilon(t, keys/16, n, 0.1, "255 sums cannot be quite even")
	}
}
