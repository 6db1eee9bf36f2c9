package filters

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// lineBits is the size of a line of Pebble's Bloom filter.
const lineBits = 512

// Ways to choose the n-th place of a key in its line, from its hash.
func anyStride(h uint64, n uint32) uint32   { return uint32(h) + n*(uint32(h)>>17) }
func oddStride(h uint64, n uint32) uint32   { return uint32(h) + n*(uint32(h)>>17|1) }
func independent(h uint64, n uint32) uint32 { return uint32(keys.Mix(h + uint64(n))) }

// simulated returns the rate of a Bloom filter that has all places of a key in one
// line, with hashes that are drawn.
func simulated(keys, bitsPerKey, probes int, place func(h uint64, n uint32) uint32) float64 {
	lines := make([][lineBits / 64]uint64, keys*bitsPerKey/lineBits)
	places := uint32(float64(bitsPerKey) * 0.69) // as Pebble rounds it
	rng := rand.New(rand.NewPCG(1, 2))
	for range keys {
		h := rng.Uint64()
		line := &lines[(h>>32)%uint64(len(lines))]
		for n := range places {
			bit := place(h, n) % lineBits
			line[bit/64] |= 1 << (bit % 64)
		}
	}
	passed := 0
	for range probes {
		h, all := rng.Uint64(), true
		line := &lines[(h>>32)%uint64(len(lines))]
		for n := uint32(0); n < places && all; n++ {
			bit := place(h, n) % lineBits
			all = line[bit/64]&(1<<(bit%64)) != 0
		}
		if all {
			passed++
		}
	}
	return float64(passed) / float64(probes)
}

// TestPebblesBloomErrsByItsStrides holds what docs/study.md says of Pebble's filter
// above ten bits per key. The places of a key are at equal strides in a line of 512
// bits. A stride of 0 or 256 comes back to one or two places, however many there
// should be, one of 128 to four, and so on; and two keys with the same stride share a
// row of places if one begins where the other has been.
func TestPebblesBloomErrsByItsStrides(t *testing.T) {
	const keys, probes = 50_000, 1_000_000
	rng := rand.New(rand.NewPCG(3, 4))
	hashes := make([]uint64, keys)
	for i := range hashes {
		hashes[i] = rng.Uint64()
	}
	for _, bits := range []int{10, 16, 20} {
		filter, err := buildPebble(bits)(hashes)
		require.NoError(t, err)
		passed := 0
		for range probes {
			if filter.contains(rng.Uint64()) {
				passed++
			}
		}
		pebble := float64(passed) / probes
		strides := simulated(keys, bits, probes, anyStride)
		odd, apart := simulated(keys, bits, probes, oddStride), simulated(keys, bits, probes, independent)
		t.Logf("%d bits per key: Pebble's %.5f; simulated, any stride %.5f, odd strides %.5f, independent places %.5f",
			bits, pebble, strides, odd, apart)
		require.InEpsilon(t, pebble, strides, 0.1, "strides alone explain the rate at %d bits", bits)
		require.Less(t, odd, strides)
		if bits == 20 {
			require.Less(t, odd, 0.6*strides, "half of it are strides that come back early")
			require.Less(t, apart, 0.15*strides, "the rest are rows that keys share")
		}
	}
}
